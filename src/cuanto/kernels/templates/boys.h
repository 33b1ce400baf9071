// The Boys function F_m(T) = integral of t^(2m) exp(-T t^2) over 0 <= t <= 1, for all orders 0..M at once.
//
// T < BOYS_T_MAX: the table holds F_0 .. at T_i = i/16 (recurrences/boys.py). With y = (T - T_i) t^2, |y| <= 1/32,
// exp(-y) under the integral is replaced by its minimax polynomial, so that F_m(T) is a short sum over the row
// F_m(T_i), F_(m+1)(T_i), ... of relative error 1e-16 (float: 5e-9) for every m; then downward recursion
// (2m + 1) F_m = 2 T F_(m+1) + exp(-T), which is stable. In double exp(-T) itself comes from two sums
// by the same relation: two short sums cost less than one exponential, and the error stays at rounding level because
// it is weighted by (2M + 1) F_M, never more than the terms it joins.
// T >= BOYS_T_MAX: F_0 = sqrt(pi / T) / 2 (erf is 1 to the last bit), upward recursion, stable there.
// S. F. Boys, doi:10.1098/rspa.1950.0036; recursions as in T. Helgaker, P. Jorgensen, J. Olsen, Molecular
// Electronic-Structure Theory, section 9.8, doi:10.1002/9781119019572.
#define BOYS_T_MAX 36
#define BOYS_ROWS_PER_UNIT 16
#define BOYS_COLUMNS 40
#define BOYS_MAX_ORDER 32

// Beyond this T the exponential no longer changes any digit of F_0..F_M (the complementary incomplete gamma
// function of order M + 1/2 is below 2^-54).
FN REAL boys_far(int M) { return REAL(43) + REAL(2.1) * REAL(M); }

#if CUANTO_SINGLE
// F_m(T) for m = order.
FN VEC boys_sum(VEC T, const REAL* table, int order) {
    const VEC i = vround(T * REAL(BOYS_ROWS_PER_UNIT));
    const VEC d = vfma(i, vset(REAL(-1) / REAL(BOYS_ROWS_PER_UNIT)), T);
    VEC f[4];
    vrow4(table + order, i * REAL(BOYS_COLUMNS), f);
    const VEC s = vfma(d * REAL(-0.3333306215130788), f[3], f[2]);
    return vfma(d * REAL(-1.00000000099308), vfma(d * REAL(-0.500040693318759), s, f[1]), f[0]);
}
#else
// low = F_m(T) and high = F_(m+1)(T) for m = order.
FN void boys_sums(VEC T, const REAL* table, int order, VEC& low, VEC& high) {
    const VEC i = vround(T * REAL(BOYS_ROWS_PER_UNIT));
    const VEC d = vfma(i, vset(REAL(-1) / REAL(BOYS_ROWS_PER_UNIT)), T);
    // Ratios of neighbouring coefficients of the polynomial, so that each term of both sums costs one operation.
    const VEC d1 = d * REAL(-1.0000000000000202), d2 = d * REAL(-0.49999999999999895);
    const VEC d3 = d * REAL(-0.33333333300218304), d4 = d * REAL(-0.2500000000175385);
    const VEC d5 = d * REAL(-0.20000813834438239), d6 = d * REAL(-0.16666642708472948);
    VEC f[8];
    const VEC offset = i * REAL(BOYS_COLUMNS);
    vrow4(table + order, offset, f);
    vrow4(table + order + 4, offset, f + 4);
    low = vfma(d4, vfma(d5, vfma(d6, f[6], f[5]), f[4]), f[3]);
    low = vfma(d1, vfma(d2, vfma(d3, low, f[2]), f[1]), f[0]);
    high = vfma(d4, vfma(d5, vfma(d6, f[7], f[6]), f[5]), f[4]);
    high = vfma(d1, vfma(d2, vfma(d3, high, f[3]), f[2]), f[1]);
}
#endif

template <int M>
FN void boys_near(VEC T, const REAL* table, VEC* F) {
    const VEC T2 = T + T;
#if CUANTO_SINGLE
    F[M] = boys_sum(T, table, M);
    if (M == 0) return;
    const VEC decay = vexp(-T);
    const int start = M - 1;
#else
    VEC low, high;
    boys_sums(T, table, M > 0 ? M - 1 : 0, low, high);
    F[M > 0 ? M - 1 : 0] = low;
    if (M == 0) return;
    F[M] = high;
    const VEC decay = vfma(vset(REAL(2 * M - 1)), low, -T2 * high);
    const int start = M - 2;
#endif
    UNROLL for (int m = start; m >= 0; --m) F[m] = vfma(T2, F[m + 1], decay) * (REAL(1) / REAL(2 * m + 1));
}

template <int M>
FN void boys_distant(VEC T, VEC* F) {
    const VEC inverse = vrcp(T);
    F[0] = vsqrt(inverse * REAL(0.7853981633974483));
    if (M == 0) return;
    const VEC half = inverse * REAL(0.5);
    VEC decay = vset(REAL(0));
    if (vany(T < boys_far(M))) decay = vexp(-T) * half;
    UNROLL for (int m = 0; m < M; ++m) F[m + 1] = vfma(half * REAL(2 * m + 1), F[m], -decay);
}

// F[0..M] for T >= 0 (NaN gives NaN); table: boys_table(), or table_float() when REAL is float.
template <int M>
FN void boys(VEC T, const REAL* table, VEC* F) {
    static_assert(0 <= M && M <= BOYS_MAX_ORDER, "the table ends at BOYS_MAX_ORDER");
    const MASK near = T < REAL(BOYS_T_MAX);
    const MASK distant = !near;
    if (vany(near)) {
        boys_near<M>(vselect(near, T, vset(REAL(0))), table, F);
    } else {
        UNROLL for (int m = 0; m <= M; ++m) F[m] = vset(REAL(0));
    }
    if (vany(distant)) {
        VEC G[M + 1];
        boys_distant<M>(vselect(near, vset(REAL(BOYS_T_MAX)), T), G);
        UNROLL for (int m = 0; m <= M; ++m) F[m] = vselect(near, F[m], G[m]);
    }
}

// The same for an M known at run time. Row 0 of the table is 1 / (2m + 1).
FN void boys_any(int M, VEC T, const REAL* table, VEC* F) {
    const MASK near = T < REAL(BOYS_T_MAX);
    const MASK distant = !near;
    const VEC T_near = vselect(near, T, vset(REAL(0)));
    const VEC T2 = T_near + T_near;
#if CUANTO_SINGLE
    F[M] = boys_sum(T_near, table, M);
    const VEC decay = vexp(-T_near);
    int m = M - 1;
#else
    VEC low, high;
    int m = M > 0 ? M - 1 : 0;
    boys_sums(T_near, table, m, low, high);
    F[m] = low;
    if (M > 0) F[M] = high;
    const VEC decay = vfma(vset(REAL(2 * m + 1)), low, -T2 * high);
    --m;
#endif
    for (; m >= 0; --m) F[m] = vfma(T2, F[m + 1], decay) * table[m];
    if (!vany(distant)) return;
    const VEC half = vrcp(vselect(near, vset(REAL(BOYS_T_MAX)), T)) * REAL(0.5);
    const VEC decay_half = vexp(vselect(near, vset(REAL(-BOYS_T_MAX)), -T)) * half;
    VEC G = vsqrt(half * REAL(1.5707963267948966));
    F[0] = vselect(near, F[0], G);
    for (m = 0; m < M; ++m) {
        G = vfma(half * REAL(2 * m + 1), G, -decay_half);
        F[m + 1] = vselect(near, F[m + 1], G);
    }
}
