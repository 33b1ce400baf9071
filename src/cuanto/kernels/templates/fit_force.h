// The derivative of sum_pqP Gamma_pqP (pq|P) with respect to the centres of p, q and P. A pair of primitives with the
// expansions E (fit_expand.h) has the Hermite density h_t = sum_f E_ft Gamma_fP for a fitting function P, whose potential
// W_t = (t|P) is known to one order more: d/d(centre of the pair) is sum_t h_t W_(t+1), d/d(A - B) the same with the
// derivatives of E and W_t. An item is a few pairs of the same two atoms; `width` fitting functions, padded.
//   target[x * width + P] and target[3 * width + 3 * atom + x] are what it is added to.
//   table: rows (t, u, v, 1 or 0 for padding, number of t, numbers of t raised along each axis).
enum { AT_ONCE = 2 };  // tuples t whose densities use each loaded Gamma

KERNEL(THREADS) ENTRY(PARAMETERS) {
    double* total = SUMS(target);
    const INDEX functions = (INDEX)rows * columns;
    FOR_TEAMS(item) {
        double on_A[3] = {0, 0, 0}, on_both[3] = {0, 0, 0};
        FOR_MEMBERS(block, 0, width / LANES) {
            const INDEX P = block * LANES;
            VEC by_P[3] = {vset(0), vset(0), vset(0)}, by_A[3] = {vset(0), vset(0), vset(0)};
            for (INDEX pair = item_first[item]; pair < item_first[item + 1]; ++pair) {
                const INDEX k = pair - first;
                const double* expansion = E + k * functions * tuples * 4;
                const double* gamma = Gamma + ((a_first[pair] - a_base) * stride + b_first[pair] - b_base) * width + P;
                const double* potential = W + k * hermites * width + P;
                VEC moved[3] = {vset(0), vset(0), vset(0)};
                for (int t = 0; t < tuples; t += AT_ONCE) {
                    VEC h[4 * AT_ONCE];
                    UNROLL for (int c = 0; c < 4 * AT_ONCE; ++c) h[c] = vset(0);
                    const double* e = expansion + 4 * t;
                    for (int m = 0; m < rows; ++m) {
                        const double* row = gamma + m * stride * width;
                        for (int n = 0; n < columns; ++n) {
                            const VEC density = vload(row + n * width);
                            UNROLL for (int c = 0; c < 4 * AT_ONCE; ++c) h[c] = vfma(e[c], density, h[c]);
                            e += 4 * tuples;
                        }
                    }
                    UNROLL for (int s = 0; s < AT_ONCE; ++s) {
                        const int* number = table + 8 * (t + s) + 4;
                        const VEC here = vload(potential + number[0] * width);
                        UNROLL for (int x = 0; x < 3; ++x) {
                            moved[x] = vfma(h[4 * s], vload(potential + number[1 + x] * width), moved[x]);
                            by_A[x] = vfma(h[4 * s + 1 + x], here, by_A[x]);
                        }
                    }
                }
                UNROLL for (int x = 0; x < 3; ++x) {
                    by_A[x] = vfma(share[k], moved[x], by_A[x]);
                    by_P[x] += moved[x];
                }
            }
            UNROLL for (int x = 0; x < 3; ++x)
                FOR_LANES(LANES) {
                    ADD(total + x * width + P + lane, -LANE(by_P[x]));
                    on_A[x] += LANE(by_A[x]);
                    on_both[x] += LANE(by_P[x]);
                }
        }
        for (int x = 0; x < 3; ++x) {
            const double one = team_sum(on_A[x]), both = team_sum(on_both[x]);
            if (FIRST_MEMBER) {
                ADD(total + 3 * width + 3 * atom_a[item] + x, one);
                ADD(total + 3 * width + 3 * atom_b[item] + x, both - one);
            }
        }
    }
}
