// Words for kernels that are written once for both devices (words_cpu.h has the list): on a GPU, an item is a thread.
#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS) ENTRY
#define TABLE __device__ static const
#define FOR_LANES(count) for (int lane = 0; lane < 1; ++lane)
#define LANE(v) (v)
#define SUMS(array) array
#define ADD(place, value) atomicAdd(place, value)
#define UNROLL_REGISTERS UNROLL
