"""NDDO methods: MNDO, AM1, PM3, PM6 and RM1."""
