// The derivative of sum_pqP Gamma_pqP (pq|P) with respect to the centres of p, q and P. A pair of primitives with the
// expansions E (fit_expand.h) has the Hermite density h_t = sum_f E_ft Gamma_fP for a fitting function P, whose potential
// W_t = (t|P) is known to one order more: d/d(centre of the pair) is sum_t h_t W_(t+1), d/d(A - B) the same with the
// derivatives of E and W_t. An item is a few pairs of the same two atoms with one of `parts` of the fitting functions, of
// which there are `width`, padded.
//   target: derivatives by fitting function, target[x * width + P], and by atom, target[3 * width + 3 * atom + x].
//   table: rows (t, u, v, 1 or 0 for padding, number of t, numbers of t raised along each axis).
enum { AT_ONCE = 2 };  // tuples t whose densities use each loaded Gamma

// The contribution of a pair to VECTORS vectors of fitting functions, `apart` numbers apart: `moved` with the pair's centre.
struct FitPair {
    const double *E, *Gamma, *W;
    INDEX a_stride, b_stride, width;
    int rows, columns, tuples;
    const int* table;
};

FN void fit_pair(const FitPair& pair, INDEX apart, VEC (*moved)[3], VEC (*by_R)[3]) {
    for (int t = 0; t < pair.tuples; t += AT_ONCE) {
        VEC h[VECTORS][4 * AT_ONCE];
        UNROLL for (int r = 0; r < VECTORS; ++r)
            UNROLL for (int c = 0; c < 4 * AT_ONCE; ++c) h[r][c] = vset(0);
        const double* e = pair.E + 4 * t;
        for (int m = 0; m < pair.rows; ++m)
            for (int n = 0; n < pair.columns; ++n) {
                const double* row = pair.Gamma + m * pair.a_stride + n * pair.b_stride;
                UNROLL for (int r = 0; r < VECTORS; ++r) {
                    const VEC density = vload(row + r * apart);
                    UNROLL for (int c = 0; c < 4 * AT_ONCE; ++c) h[r][c] = vfma(e[c], density, h[r][c]);
                }
                e += 4 * pair.tuples;
            }
        UNROLL for (int s = 0; s < AT_ONCE; ++s) {
            const int* number = pair.table + 8 * (t + s) + 4;
            UNROLL for (int r = 0; r < VECTORS; ++r) {
                const double* W = pair.W + r * apart;
                const VEC here = vload(W + number[0] * pair.width);
                UNROLL for (int x = 0; x < 3; ++x) {
                    moved[r][x] = vfma(h[r][4 * s], vload(W + number[1 + x] * pair.width), moved[r][x]);
                    by_R[r][x] = vfma(h[r][4 * s + 1 + x], here, by_R[r][x]);
                }
            }
        }
    }
}

KERNEL(THREADS) ENTRY(PARAMETERS) {
    const auto total = SUMS(target);
    const INDEX expansion = (INDEX)rows * columns * tuples * 4, blocks = width / LANES / VECTORS, apart = blocks * LANES;
    FOR_TEAMS(item) {
        const INDEX run = item / parts, part = item % parts;
        double on_A[3] = {0, 0, 0}, on_both[3] = {0, 0, 0};
        FOR_MEMBERS(block, part * blocks / parts, (part + 1) * blocks / parts) {
            const INDEX P = block * LANES;
            VEC by_P[VECTORS][3], by_A[VECTORS][3];
            UNROLL for (int r = 0; r < VECTORS; ++r)
                UNROLL for (int x = 0; x < 3; ++x) by_P[r][x] = by_A[r][x] = vset(0);
            for (INDEX k = item_first[run]; k < item_first[run + 1]; ++k) {
                const INDEX mine = k - first;
                const INDEX place = (a_place[k] - a_base) * a_stride + (b_place[k] - b_base) * b_stride;
                const FitPair pair = {E + mine * expansion, Gamma + place + P, W + mine * hermites * width + P,
                                      a_stride, b_stride, width, rows, columns, tuples, table};
                VEC moved[VECTORS][3];
                UNROLL for (int r = 0; r < VECTORS; ++r)
                    UNROLL for (int x = 0; x < 3; ++x) moved[r][x] = vset(0);
                fit_pair(pair, apart, moved, by_A);
                UNROLL for (int r = 0; r < VECTORS; ++r)
                    UNROLL for (int x = 0; x < 3; ++x) {
                        by_A[r][x] = vfma(share[mine], moved[r][x], by_A[r][x]);
                        by_P[r][x] += moved[r][x];
                    }
            }
            UNROLL for (int r = 0; r < VECTORS; ++r)
                UNROLL for (int x = 0; x < 3; ++x)
                    FOR_LANES(LANES) {
                        ADD(total + x * width + r * apart + P + lane, -LANE(by_P[r][x]));
                        on_A[x] += LANE(by_A[r][x]);
                        on_both[x] += LANE(by_P[r][x]);
                    }
        }
        for (int x = 0; x < 3; ++x) {
            const double one = team_sum(on_A[x]), both = team_sum(on_both[x]);
            if (FIRST_MEMBER) {
                ADD(total + 3 * width + 3 * atom_a[run] + x, one);
                ADD(total + 3 * width + 3 * atom_b[run] + x, both - one);
            }
        }
    }
}
