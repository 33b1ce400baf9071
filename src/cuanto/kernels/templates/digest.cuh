// Add the integrals of a list of quartets to J and K (their halves, see digest_cpu.h), one thread per quartet. Integrals are
// [column, bra function, ket function, item]. Neighbours in the list mostly share a, b and c: contributions to the same
// element are summed within the warp first.
// FIXED: NB, NC and ND, functions of b, c and d, are compile-time constants; otherwise they belong to the quartet.
#if !FIXED
#define NB x.nb
#define NC x.nc
#define ND x.nd
#endif

struct Quartet {
    const REAL* integrals;
    INDEX stride, n, a, b, c, d;
    int na, nb, nc, nd;
    double weight;   // 0: no quartet for this thread
    int lane, last;  // of the neighbours that share a, b and c
    bool first;
};

FN double integral(const Quartet& x, int i, int j, int k, int l) {
    return x.integrals[((INDEX)((i * NB + j) * NC + k) * ND + l) * x.stride];
}

FN void add(const Quartet& x, const Sums& place, double value) {
    if (x.weight != 0) ADD(place, x.weight * value);
}

// The same for an element to which all neighbours contribute.
FN void add_shared(const Quartet& x, const Sums& place, double value) {
    Parts sum = parts_of(x.weight != 0 ? x.weight * value : 0);
    if (sum.coarse == OVERFLOWN) {
        add_parts(place, sum);
        sum.coarse = 0;
    }
    const bool coarse = __any_sync(0xffffffffu, sum.coarse != 0);
    UNROLL for (int step = 1; step < 32; step *= 2) {
        const bool shared = x.lane + step <= x.last;
        const INDEX other = __shfl_down_sync(0xffffffffu, sum.fine, step);
        if (shared) sum.fine += other;
        if (coarse) {
            const INDEX large = __shfl_down_sync(0xffffffffu, sum.coarse, step);
            if (shared) sum.coarse += large;
        }
    }
    if (x.first && x.weight != 0) add_parts(place, sum);
}

#if FIXED
FN void digest_k(const Quartet& x, const double* D, const Sums& K) {
    double bc[NB][NC], bd[NB][ND];
    UNROLL for (int j = 0; j < NB; ++j) {
        UNROLL for (int k = 0; k < NC; ++k) bc[j][k] = 0;
        UNROLL for (int l = 0; l < ND; ++l) bd[j][l] = 0;
    }
    NO_UNROLL for (int i = 0; i < x.na; ++i) {
        const INDEX row = (x.a + i) * x.n;
        double ac[NC], ad[ND];
        UNROLL for (int k = 0; k < NC; ++k) ac[k] = 0;
        UNROLL for (int l = 0; l < ND; ++l) ad[l] = 0;
        double Dac[NC], Dad[ND];
        UNROLL for (int k = 0; k < NC; ++k) Dac[k] = D[row + x.c + k];
        UNROLL for (int l = 0; l < ND; ++l) Dad[l] = D[row + x.d + l];
        UNROLL for (int j = 0; j < NB; ++j) {
            const double* Db = D + (x.b + j) * x.n;
            UNROLL for (int k = 0; k < NC; ++k)
                UNROLL for (int l = 0; l < ND; ++l) {
                    const double I = integral(x, i, j, k, l);
                    ac[k] = fma(I, Db[x.d + l], ac[k]);
                    ad[l] = fma(I, Db[x.c + k], ad[l]);
                    bc[j][k] = fma(I, Dad[l], bc[j][k]);
                    bd[j][l] = fma(I, Dac[k], bd[j][l]);
                }
        }
        UNROLL for (int k = 0; k < NC; ++k) add_shared(x, K + row + x.c + k, ac[k]);
        UNROLL for (int l = 0; l < ND; ++l) add(x, K + row + x.d + l, ad[l]);
    }
    UNROLL for (int j = 0; j < NB; ++j) {
        UNROLL for (int k = 0; k < NC; ++k) add_shared(x, K + (x.b + j) * x.n + x.c + k, bc[j][k]);
        UNROLL for (int l = 0; l < ND; ++l) add(x, K + (x.b + j) * x.n + x.d + l, bd[j][l]);
    }
}
#else
// K of a function r of a or b and a function c of c or d, with the density between the other two.
FN void digest_k(const Quartet& x, const double* D, const Sums& K) {
    for (int bra = 0; bra < 2; ++bra)
        for (int ket = 0; ket < 2; ++ket) {
            const int rows = bra ? x.nb : x.na, other_rows = bra ? x.na : x.nb;
            const int columns = ket ? x.nd : x.nc, other_columns = ket ? x.nc : x.nd;
            const double* density = D + (bra ? x.a : x.b) * x.n + (ket ? x.c : x.d);
            const Sums place = K + (bra ? x.b : x.a) * x.n + (ket ? x.d : x.c);
            for (int r = 0; r < rows; ++r)
                for (int c = 0; c < columns; ++c) {
                    double s = 0;
                    for (int p = 0; p < other_rows; ++p)
                        for (int q = 0; q < other_columns; ++q)
                            s = fma(integral(x, bra ? p : r, bra ? r : p, ket ? q : c, ket ? c : q), density[p * x.n + q], s);
                    if (ket) add(x, place + r * x.n + c, s);
                    else add_shared(x, place + r * x.n + c, s);
                }
        }
}
#endif

FN void digest_j(const Quartet& x, const double* D, const Sums& J) {
    for (int i = 0; i < x.na; ++i)
        for (int j = 0; j < NB; ++j) {
            double s = 0;
            for (int k = 0; k < NC; ++k)
                for (int l = 0; l < ND; ++l) s = fma(integral(x, i, j, k, l), D[(x.c + k) * x.n + x.d + l], s);
            add_shared(x, J + (x.a + i) * x.n + x.b + j, 2 * s);
        }
    for (int k = 0; k < NC; ++k)
        for (int l = 0; l < ND; ++l) {
            double s = 0;
            for (int i = 0; i < x.na; ++i)
                for (int j = 0; j < NB; ++j) s = fma(integral(x, i, j, k, l), D[(x.a + i) * x.n + x.b + j], s);
            add(x, J + (x.c + k) * x.n + x.d + l, 2 * s);
        }
}

KERNEL(THREADS) ENTRY(PARAMETERS) {
    const INDEX items = *count, all = items * columns;
    const int lane = threadIdx.x % 32;
    // Whole warps stay in the loop because of the warp sums.
    for (INDEX t = (INDEX)blockIdx.x * blockDim.x + threadIdx.x; t - lane < all; t += (INDEX)gridDim.x * blockDim.x) {
        const INDEX item = t < all ? t % items : 0;
        const int q = t < all ? (int)(t / items) : 0;
        const int b = list[2 * item], listed = list[2 * item + 1], ket = listed < 0 ? 0 : listed;
        const int *ab = bra_ao + 2 * ((INDEX)b * columns + q), *cd = ket_ao + 2 * (INDEX)ket;
        const bool there = t < all && listed >= 0;
        const double weight = !there ? 0.0 : same && bra_pair[b] == ket_pair[ket] ? 0.5 : 1.0;
        const int a0 = __shfl_up_sync(0xffffffffu, ab[0], 1), b0 = __shfl_up_sync(0xffffffffu, ab[1], 1);
        const int c0 = __shfl_up_sync(0xffffffffu, cd[0], 1), w0 = __shfl_up_sync(0xffffffffu, (int)there, 1);
        const bool first = lane == 0 || !there || !w0 || a0 != ab[0] || b0 != ab[1] || c0 != cd[0];
        const unsigned others = __ballot_sync(0xffffffffu, first) & ~((2u << lane) - 1u);
        const int last = others ? __ffs((int)others) - 2 : 31;
        const Quartet x = {integrals + (INDEX)q * na * nb * nc * nd * stride + item, stride, nbf, ab[0], ab[1], cd[0], cd[1],
                           na, nb, nc, nd, weight, lane, last, first};
        for (INDEX density = 0; density < densities; ++density) {
            const INDEX matrix = density * nbf * nbf;
            if (want_k) digest_k(x, D + matrix, Sums{(WORD*)K} + matrix);
            if (want_j) digest_j(x, D + matrix, Sums{(WORD*)J} + matrix);
        }
    }
}
