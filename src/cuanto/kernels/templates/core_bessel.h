// Projections of Gaussians on spherical harmonics about another centre, as functions of the distance r from it.
//
// With x = 2 a r d the Gaussian exp(-a |r - d|^2) has the radial factors exp(-a (r - d)^2) b_n(x), where b_n = exp(-x) i_n(x)
// are modified spherical Bessel functions of the first kind. Their ratios i_n / i_(n-1) follow from a continued fraction,
// which converges fast for small x; exp(x) = i_0 (1 + x + x i_1/i_0) then gives b_0. For large x the upward recurrence
// is stable for the few orders needed here.
#define BESSEL_LARGE 8.0
#define BESSEL_STEPS 14

FN void core_bessel(int last, VEC x, VEC* b) {
    const MASK large = x >= REAL(BESSEL_LARGE);
    VEC ratio = x * REAL(1.0 / (2 * (last + BESSEL_STEPS) + 3));
    for (int n = last + BESSEL_STEPS; n > 0; --n) {
        ratio = x * vrcp(vfma(x, ratio, vset(REAL(2 * n + 1))));
        if (n <= last) b[n] = ratio;
    }
    b[0] = vrcp(vfma(x, ratio, x + REAL(1)));
    for (int n = 1; n <= last; ++n) b[n] *= b[n - 1];
    if (!vany(large)) return;
    const VEC inverse = vrcp(vselect(large, x, vset(REAL(BESSEL_LARGE)))), mirrored = vexp(REAL(-2) * x);
    VEC low = REAL(0.5) * inverse * (REAL(1) - mirrored), high = inverse * (REAL(0.5) * (REAL(1) + mirrored) - low);
    b[0] = vselect(large, low, b[0]);
    for (int n = 1; n <= last; ++n) {
        b[n] = vselect(large, high, b[n]);
        const VEC next = low - REAL(2 * n + 1) * inverse * high;
        low = high;
        high = next;
    }
}

// F[n] = sum_k c_k exp(-a_k (r - d)^2) b_n(2 a_k r d) for n <= last; if G is given, the same with 2 a_k c_k for c_k in G[n].
FN void core_radial(int last, int primitives, const double* a, const double* c, double d, VEC r, VEC* F, VEC* G) {
    for (int n = 0; n <= last; ++n) F[n] = vset(0);
    if (G)
        for (int n = 0; n <= last; ++n) G[n] = vset(0);
    const VEC away = r - d;
    for (int k = 0; k < primitives; ++k) {
        const VEC exponent = REAL(-a[k]) * away * away;
        if (!vany(exponent > REAL(-700))) continue;
        VEC b[LAMBDAS];
        core_bessel(last, r * REAL(2 * a[k] * d), b);
        const VEC value = REAL(c[k]) * vexp(exponent);
        for (int n = 0; n <= last; ++n) F[n] = vfma(value, b[n], F[n]);
        if (G)
            for (int n = 0; n <= last; ++n) G[n] = vfma(REAL(2 * a[k]) * value, b[n], G[n]);
    }
}

// t[...] = r^k F_n for all powers k <= degree of a polynomial and all n that couple them with momentum l; returns their number.
FN int core_terms(int l, int degree, VEC r, const VEC* F, VEC* t) {
    int count = 0;
    VEC power = vset(1);
    for (int k = 0; k <= degree; ++k) {
        for (int n = l > k ? l - k : (l + k) % 2; n <= l + k; n += 2) t[count++] = power * F[n];
        power = power * r;
    }
    return count;
}

struct CoreShell {  // fields of a shell's record, and its distance from the centre
    int l, functions, primitives;
    INDEX row, first, coupling;
    double distance;
};

FN CoreShell core_shell(const INDEX* records, const double* distances, INDEX shell) {
    const INDEX* field = records + SHELL_FIELDS * shell;
    return {(int)field[0], (int)field[1], (int)field[2], field[3], field[4], field[5], distances[shell]};
}
