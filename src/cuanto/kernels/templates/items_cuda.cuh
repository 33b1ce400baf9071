// Words for kernels that are written once for both devices (items_cpu.h has the list): an item for each thread.
#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
#define FOR_ITEMS(i)                                                                              \
    for (INDEX i = begin + (INDEX)blockIdx.x * blockDim.x + threadIdx.x; i < end; i += (INDEX)gridDim.x * blockDim.x)
