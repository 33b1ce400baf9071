// Words for kernels that are written once for both devices: KERNEL(threads of a block) ENTRY(PARAMETERS) works on the
// items begin .. end, one by one.
#define KERNEL(threads) extern "C" void
#define FOR_ITEMS(i) for (INDEX i = begin; i < end; ++i)
