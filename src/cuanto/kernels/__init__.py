"""What is computed: integrals as expression graphs, placed by schedules, printed by emitters. No device, no I/O."""
