// Hermite densities H[pair][density][t] = sum_f X[density][places[f]] E[f][t] of the pairs of a block, their bounds
// sqrt (h|h) = |W^T (factor h)|, and keys that sort them: by powers of four of the bound, then along the curve.
// `first`: the first of these pairs in its class.
KERNEL(THREADS) ENTRY(PARAMETERS) {
    SCRATCH
    FOR_TEAMS(item) {
        const INDEX pair = first + item, width = (INDEX)densities * tuples;
        const INDEX* place = places + item * functions;
        const double* expansion = E + item * functions * tuples;
        FOR_MEMBERS(w, 0, width) {
            const INDEX d = w / tuples, t = w % tuples;
            double sum = 0;
            for (int f = 0; f < functions; ++f) sum = vfma(X[d * size + place[f]], expansion[f * tuples + t], sum);
            H[pair * width + w] = sum;
            scratch[w] = sum * factor[pair * tuples + t];
        }
        BARRIER;
        double mine = 0;
        FOR_MEMBERS(w, 0, width) {
            const double* g = scratch + w / tuples * tuples;
            double sum = 0;
            for (int t = 0; t < tuples; ++t) sum = vfma(g[t], W[t * tuples + w % tuples], sum);
            mine = vfma(sum, sum, mine);
        }
        const double size_of_h = vsqrt(team_sum(mine));
        if (FIRST_MEMBER) {
            bound[pair] = size_of_h;
            key[pair] = curve[pair] - (bits_of(size_of_h) >> 53) * count;
        }
    }
}
