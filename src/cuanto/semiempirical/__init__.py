"""NDDO methods: MNDO, AM1, PM3 and PM6."""
