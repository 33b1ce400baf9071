// P[function][l m][point]: projections of basis functions on spherical harmonics about a centre. An item is a radial point
// of a contracted shell; momentum l takes the first reach[l] points, and its projections begin at start[l] in a row.
KERNEL(THREADS) ENTRY(PARAMETERS) {
    FOR_VECTORS(item) {
        const INDEX k = item % points;
        const CoreShell shell = core_shell(records, distances, item / points);
        const VEC r = vload(radius + k);
        VEC F[LAMBDAS], t[TERMS];
        const double* a = exponent + shell.first;
        core_radial(shell.l + momenta - 1, shell.primitives, a, coefficient + shell.first, shell.distance, r, F, 0);
        const double* X = coupling + shell.coupling;
        for (int l = 0; l < momenta; ++l) {
            const int count = core_terms(l, shell.l, r, F, t);
            for (int m = 0; m < 2 * l + 1; ++m)
                for (int f = 0; f < shell.functions; ++f, X += count) {
                    VEC sum = vset(0);
                    for (int i = 0; i < count; ++i) sum = vfma(REAL(X[i]), t[i], sum);
                    if (k < reach[l]) vstore(P + (shell.row + f) * width + start[l] + m * reach[l] + k, sum);
                }
        }
    }
}
