// Hermite densities H[pair][density][t] = sum_f X[density][f] E[f][t] of the pairs of a block, their bounds
// sqrt (h|h) with the weights of the pairs, and keys that sort them, small bounds first. `first`: the first of these pairs,
// `start`: the first one of their class, which is class `number`.
KERNEL(THREADS) ENTRY(PARAMETERS) {
    SCRATCH
    const int functions = rows * columns;
    FOR_TEAMS(item) {
        const INDEX pair = first + item, width = (INDEX)densities * tuples;
        const double* density = X + j_place(origin, row, rows, columns, u[pair], v[pair]);
        const double* expansion = E + item * functions * tuples;
        const double root = geometry[4 * pair];
        FOR_MEMBERS(w, 0, width) {
            const INDEX d = w / tuples, t = w % tuples;
            double sum = 0;
            for (int m = 0, f = 0; m < rows; ++m)
                for (int n = 0; n < columns; ++n, ++f)
                    sum = vfma(density[d * size + m * row + n], expansion[f * tuples + t], sum);
            H[(pair - start) * width + w] = sum;
            for (int degree = table[8 * t] + table[8 * t + 1] + table[8 * t + 2]; degree > 0; --degree) sum *= root;
            scratch[w] = sum;
        }
        BARRIER;
        double mine = 0;
        FOR_MEMBERS(w, 0, width) {
            const int c = (int)(w % tuples);
            const double* g = scratch + w - c;
            double sum = 0;
            for (int t = c; t < tuples; ++t) sum = vfma(g[t], W[t * tuples + c], sum);
            mine = vfma(sum, sum, mine);
        }
        // factor = weight p^-3/2
        const double size_of_h = J_SELF_REPULSION * factor[pair] * vsqrt(root) * vsqrt(team_sum(mine));
        if (FIRST_MEMBER) {
            bound[pair] = size_of_h;
            key[pair] = j_key(number, j_power(size_of_h), along[pair]);
        }
    }
}
