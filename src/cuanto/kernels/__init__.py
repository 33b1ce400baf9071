"""Kernel generator: recurrences give expression graphs, schedules place them, `emit` prints them. No device, no I/O."""
