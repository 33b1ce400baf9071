// J[density][places[f]] = factor sum_t E[f][t] V[density, t][rank]: an item is a function of a pair.
KERNEL(THREADS) ENTRY(PARAMETERS) {
    FOR_ITEMS(item) {
        const INDEX pair = first + item / functions;
        for (int d = 0; d < densities; ++d) {
            const double* potential = V + (INDEX)d * tuples * value_stride + rank[pair] * bra_stride;
            double sum = 0;
            for (int t = 0; t < tuples; ++t) sum = vfma(E[item * tuples + t], potential[t * value_stride], sum);
            J[d * size + places[item]] = sum * factor[pair];
        }
    }
}
