// The gradient of sum_abcd Gamma_abcd (ab|cd) for a list of quartets of shells, one thread per quartet (and column of the
// bra), for PRODUCTS of the products cd, beginning with number FIRST. The generated forces(), for one primitive quartet,
// precedes this text.

FN REAL dot(const REAL* a, const REAL* b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

KERNEL(THREADS) ENTRY(PARAMETERS) {
    const INDEX items = *count, all = items * columns, threads = (INDEX)gridDim.x * blockDim.x;
    const Sums target = SUMS(gradient) + blockIdx.x % copies * 3 * atoms;
    for (INDEX mine = (INDEX)blockIdx.x * blockDim.x + threadIdx.x; mine < all; mine += threads) {
        const INDEX item = mine % items;
        const int q = (int)(mine / items);
        const INDEX bra = list[2 * item], ket = list[2 * item + 1], block = ket / BLOCK;
        const int *ab = bra_ao + 2 * (bra * columns + q), *cd = ket_ao + 2 * ket;
        const INDEX a = place[ab[0]], b = place[ab[1]], c = place[cd[0]], d = place[cd[1]];

        REAL gamma[NA * NB * PRODUCTS];
        GAMMA_LOOP for (int n = 0; n < NA * NB * PRODUCTS; ++n) gamma[n] = 0;
        for (INDEX spin = 0; spin < densities; ++spin)
            GAMMA_LOOP for (int f = 0; f < PRODUCTS; ++f) {  // D is symmetric
                const double* C = D + (spin * size + c + (FIRST + f) / ND) * size;
                const double* E = D + (spin * size + d + (FIRST + f) % ND) * size;
                GAMMA_LOOP for (int m = 0; m < NA; ++m)
                    GAMMA_LOOP for (int n = 0; n < NB; ++n)
                        gamma[(m * NB + n) * PRODUCTS + f] += REAL(C[a + m] * E[b + n] + E[a + m] * C[b + n]);
            }

        REAL AB[3], CD[3];
        UNROLL for (int x = 0; x < 3; ++x) {
            AB[x] = bra_shell[bra * SHELL_FIELDS + x];
            CD[x] = ket_shell[(block * SHELL_FIELDS + x) * BLOCK + ket % BLOCK];
        }
        // A pair on one atom: how its force is shared does not matter.
        const REAL AB2 = dot(AB, AB), CD2 = dot(CD, CD);
        const REAL inverse_ab = AB2 > 0 ? 1 / AB2 : REAL(0), inverse_cd = CD2 > 0 ? 1 / CD2 : REAL(0);
        const REAL* bras = bra_record + bra_first[bra] * BRA_FIELDS;
        const REAL* coefficient = bra_coefficient + bra_first[bra] * columns + q;
        const REAL* kets = ket_record + ket_first[block] * KET_FIELDS * BLOCK + ket % BLOCK;
        const int bra_count = bra_first[bra + 1] - bra_first[bra], ket_count = ket_first[block + 1] - ket_first[block];

        REAL on_a[3] = {0, 0, 0}, on_c[3] = {0, 0, 0}, total[3] = {0, 0, 0};
        // One loop, so that threads with fewer primitives do not wait for the others of their warp at each turn.
        for (int k = 0, l = 0; k < bra_count;) {
            const REAL *one = bras + k * BRA_FIELDS, *other = kets + l * KET_FIELDS * BLOCK;
            if (one[SIZE] * other[SIZE * BLOCK] < REAL(cutoff)) {
                if (l == 0) break;  // sizes descend
                ++k;
                l = 0;
                continue;
            }
            const REAL factor_k = coefficient[k * columns];
            if (++l == ket_count) {
                l = 0;
                ++k;
            }
            REAL X[3], base[ORDER + 1], of_bra[8], of_ket[8], sum[10];
            UNROLL for (int x = 0; x < 3; ++x)
                X[x] = (one[1 + x] - other[(1 + x) * BLOCK]) + (one[11 + x] - other[(11 + x) * BLOCK]);
            UNROLL for (int n = 0; n < 7; ++n) of_bra[n] = one[4 + n];
            UNROLL for (int n = 0; n < 6; ++n) of_ket[n] = other[(5 + n) * BLOCK];
            const REAL inverse_q = other[0], root = vrsqrt(1 + one[0] * inverse_q), rho = one[0] * root * root;
            const REAL share_a = of_bra[7] = dot(of_bra + 3, AB) * inverse_ab;
            const REAL share_c = of_ket[7] = dot(of_ket + 3, CD) * inverse_cd;
            of_ket[6] = REAL(0.5) * inverse_q;
            boys<ORDER>(rho * dot(X, X), boys_table, base);
            REAL factor = root * other[4 * BLOCK] * factor_k;
            UNROLL for (int n = 0; n <= ORDER; ++n) {
                base[n] *= factor;
                factor *= -2 * rho;
            }
            forces(of_bra, of_ket, X, base, gamma, sum);
            const REAL twist_ab = sum[0] * share_a * (1 - share_a) / of_bra[6];  // 2ab/p times the energy
            const REAL twist_cd = sum[0] * share_c * (1 - share_c) / of_ket[6];
            UNROLL for (int x = 0; x < 3; ++x) {
                total[x] += sum[1 + x];
                on_a[x] += share_a * sum[1 + x] + sum[4 + x] - twist_ab * AB[x];
                on_c[x] += sum[7 + x] - share_c * sum[1 + x] - twist_cd * CD[x];
            }
        }
        const double weight = same && bra_pair[bra] == ket_pair[ket] ? 0.5 : 1.0;
        UNROLL for (int x = 0; x < 3; ++x) {
            ADD(target + 3 * atom[a] + x, weight * on_a[x]);
            ADD(target + 3 * atom[b] + x, weight * (total[x] - on_a[x]));
            ADD(target + 3 * atom[c] + x, weight * on_c[x]);
            ADD(target + 3 * atom[d] + x, -weight * (total[x] + on_c[x]));
        }
    }
}
