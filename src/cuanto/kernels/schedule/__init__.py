"""Which thread or SIMD lane does what: straight-line text (lane, thread) or index tables (table, group)."""
