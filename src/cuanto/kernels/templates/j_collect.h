// J[density][f] = J_UNIT factor sum_t E[f][t] V[density, t][rank]: an item is a function of a pair.
KERNEL(THREADS) ENTRY(PARAMETERS) {
    const int functions = rows * columns;
    FOR_ITEMS(item) {
        const INDEX own = item / functions, pair = first + own;
        const int f = (int)(item % functions);
        const INDEX place = j_place(origin, row, rows, columns, u[pair], v[pair]) + f / columns * row + f % columns;
        for (int d = 0; d < densities; ++d) {
            const double* potential = V + (INDEX)d * tuples * value_stride + rank[pair] * bra_stride;
            double sum = 0;
            for (int t = 0; t < tuples; ++t) sum = vfma(E[item * tuples + t], potential[t * value_stride], sum);
            J[d * size + place] = sum * factor[pair] * J_UNIT;
        }
    }
}
