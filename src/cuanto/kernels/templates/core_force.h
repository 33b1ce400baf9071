// force[shell][axis][point] = sum over functions, l and m of Q[function][l m][point] times the derivative of the projection
// (core_project.h) with respect to the centre of the shell: polynomials of one degree more, with 2 a c for the coefficients
// c, and of one degree less.
KERNEL(THREADS) ENTRY(PARAMETERS) {
    FOR_VECTORS(item) {
        const INDEX k = item % points;
        const CoreShell shell = core_shell(records, distances, item / points);
        const VEC r = vload(radius + k);
        VEC F[LAMBDAS], G[LAMBDAS], t[2 * TERMS], total[3] = {vset(0), vset(0), vset(0)};
        const double* a = exponent + shell.first;
        core_radial(shell.l + momenta, shell.primitives, a, coefficient + shell.first, shell.distance, r, F, G);
        const double* X = coupling + shell.coupling;
        for (int l = 0; l < momenta; ++l) {
            int count = core_terms(l, shell.l + 1, r, G, t);
            count += core_terms(l, shell.l - 1, r, F, t + count);
            for (int m = 0; m < 2 * l + 1; ++m)
                for (int f = 0; f < shell.functions; ++f) {
                    const bool inside = k < reach[l];
                    const double* given = Q + (shell.row + f) * width + start[l] + m * reach[l] + k;
                    const VEC weight = inside ? vload(given) : vset(0);
                    for (int x = 0; x < 3; ++x, X += count) {
                        VEC sum = vset(0);
                        for (int i = 0; i < count; ++i) sum = vfma(REAL(X[i]), t[i], sum);
                        total[x] = vfma(weight, sum, total[x]);
                    }
                }
        }
        for (int x = 0; x < 3; ++x) vstore(force + (item / points * 3 + x) * points + k, total[x]);
    }
}
