// Hermite densities H[pair][density][t] = sum_f X[density][places[f]] E[f][t] of the pairs of a block, their bounds
// sqrt (h|h) = |W^T (factor h)|, and keys that sort them: by powers of four of the bound, then along the curve.
// One block of threads per pair; `first`: the first of these pairs in its class.
extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS) {
    extern __shared__ double shared_memory[];
    __shared__ double squares[THREADS];
    const INDEX pair = first + blockIdx.x;
    const INDEX* place = places + (INDEX)blockIdx.x * functions;
    const double* expansion = E + (INDEX)blockIdx.x * functions * tuples;
    for (int w = threadIdx.x; w < densities * tuples; w += THREADS) {
        const int d = w / tuples, t = w % tuples;
        double sum = 0;
        for (int f = 0; f < functions; ++f) sum = vfma(X[d * size + place[f]], expansion[f * tuples + t], sum);
        H[pair * densities * tuples + w] = sum;
        shared_memory[w] = sum * factor[pair * tuples + t];
    }
    __syncthreads();
    double mine = 0;
    for (int w = threadIdx.x; w < densities * tuples; w += THREADS) {
        const double* g = shared_memory + w / tuples * tuples;
        double sum = 0;
        for (int t = 0; t < tuples; ++t) sum = vfma(g[t], W[t * tuples + w % tuples], sum);
        mine = vfma(sum, sum, mine);
    }
    squares[threadIdx.x] = mine;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) squares[threadIdx.x] += squares[threadIdx.x + half];
    }
    if (threadIdx.x == 0) {
        const double size_of_h = sqrt(squares[0]);
        bound[pair] = size_of_h;
        key[pair] = curve[pair] - (__double_as_longlong(size_of_h) >> 53) * count;
    }
}
