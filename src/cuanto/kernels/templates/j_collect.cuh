// J[density][places[f]] = factor sum_t E[f][t] V[density, t][rank]: a thread for every function of every pair.
extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS) {
    const INDEX item = (INDEX)blockIdx.x * THREADS + threadIdx.x;
    if (item >= pairs * functions) return;
    const INDEX pair = first + item / functions;
    for (int d = 0; d < densities; ++d) {
        const double* potential = V + (INDEX)d * tuples * bras + rank[pair];
        double sum = 0;
        for (int t = 0; t < tuples; ++t) sum = vfma(E[item * tuples + t], potential[t * bras], sum);
        J[d * size + places[item]] = sum * factor[pair];
    }
}
