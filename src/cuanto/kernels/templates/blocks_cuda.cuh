// Words for kernels in which a block of threads shares an item (blocks_cpu.h has the list).
#define FOR_BLOCKS(i) for (INDEX i = begin + blockIdx.x; i < end; i += gridDim.x)
#define FOR_THREADS(j, count) for (INDEX j = threadIdx.x; j < (count); j += THREADS)
#define BARRIER __syncthreads()
#define SCRATCH extern __shared__ double scratch[];
#define FIRST_THREAD if (threadIdx.x == 0)
FN double block_sum(double mine) {
    __shared__ double parts[THREADS];
    parts[threadIdx.x] = mine;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    }
    __syncthreads();
    return parts[0];
}
FN INDEX bits_of(double x) { return __double_as_longlong(x); }
