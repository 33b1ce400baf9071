// The gradient of sum_abcd Gamma_abcd (ab|cd) for a list of quartets of shells, with Gamma_abcd = sum_s D_ac D_bd + D_ad D_bc
// over monomials: no integral is formed. WORKERS threads of a warp share a quartet. A thread has FUNCTIONS_EACH of the ket's
// products cd, for which expand() turns Gamma into Hermite Gaussians of the bra: h_t, and k_xt of its derivative with
// respect to A - B. With the ket's expansion E, all derivatives are sums of h or k times R_(t + s)(P - Q), which the
// workers build together, [t][u][v] with SIDE numbers along each axis, so that offsets add up.
// Generated: the tables and functions before this text (kernels/exchange_force.py).

// x e_t = -h e_(t-1) + shift e_t - (t + 1) e_(t+1): a factor of the ket, with the signs (-1)^t of R_(t + s).
FN void raise(REAL shift, REAL h, REAL* e) {
    REAL before = 0;
    UNROLL for (int t = 0; t <= KET_ORDER; ++t) {
        const REAL now = e[t], next = t < KET_ORDER ? e[t < KET_ORDER ? t + 1 : t] : REAL(0);
        e[t] = shift * now - h * before - (t + 1) * next;
        before = now;
    }
}

// E_t of x_C^i x_D^j along one axis, and its derivative with respect to C - D; share: c/q.
FN void along_axis(int i, int j, REAL QC, REAL QD, REAL h, REAL share, REAL* value, REAL* slope) {
    REAL lowered_c[KET_ORDER + 1], lowered_d[KET_ORDER + 1];
    UNROLL for (int t = 0; t <= KET_ORDER; ++t) lowered_c[t] = t == 0 ? REAL(1) : REAL(0);
    UNROLL for (int n = 1; n < LC; ++n)
        if (n < i) raise(QC, h, lowered_c);
    UNROLL for (int n = 1; n < LD; ++n)
        if (n < j) raise(QD, h, lowered_c);
    UNROLL for (int t = 0; t <= KET_ORDER; ++t) lowered_d[t] = lowered_c[t];
    if (j > 0) raise(QD, h, lowered_c);
    if (i > 0) raise(QC, h, lowered_d);
    UNROLL for (int t = 0; t <= KET_ORDER; ++t) {
        slope[t] = j * share * lowered_d[t] - i * (1 - share) * lowered_c[t];
        value[t] = lowered_c[t];
    }
    if (i > 0) raise(QC, h, value);
}

// R^m of degree up to ORDER - m from R^(m + 1) of one degree less, one after the other until R^0 is in the first cube.
FN void build_r(const REAL* X, const REAL* base, REAL* cubes, int worker, bool alive) {
    UNROLL for (int m = ORDER; m >= 0; --m) {
        REAL *to = cubes + (m % 2) * CUBE, *from = cubes + (1 - m % 2) * CUBE;
        const int entries = (ORDER - m + 1) * (ORDER - m + 2) * (ORDER - m + 3) / 6;
        UNROLL for (int n = 0; n < (entries + WORKERS - 1) / WORKERS; ++n) {
            const int entry = n * WORKERS + worker;
            if (!alive || entry >= entries) continue;
            const int packed = hermite[entry], place = packed & 0xffff, axis = (packed >> 16) & 3, power = packed >> 18;
            REAL value = base[m];
            if (entry > 0) {
                const int step = axis == 0 ? SIDE * SIDE : axis == 1 ? SIDE : 1;
                value = (axis == 0 ? X[0] : axis == 1 ? X[1] : X[2]) * from[place - step];
                if (power > 0) value = fma(REAL(power), from[place - 2 * step], value);
            }
            to[place] = value;
        }
        if (WORKERS > 1) __syncwarp();
    }
}

#if EXPAND_LOOPS  // straight-line code would be too long
FN void expand(const REAL* pair, const REAL* gamma, REAL* h, REAL* k) {
    REAL e[3][LA + 1][LB + 1][BRA_ORDER + 2];
    for (int x = 0; x < 3; ++x)
        for (int i = 0; i <= LA; ++i)
            for (int j = 0; j <= LB; ++j) {
                const REAL* from = i > 0 ? e[x][i - 1][j] : e[x][0][j > 0 ? j - 1 : 0];
                const REAL shift = pair[i > 0 ? x : 3 + x];
                REAL* to = e[x][i][j];
                for (int t = 0; t < BRA_ORDER + 2; ++t)
                    to[t] = i + j == 0 ? REAL(t == 0)
                                       : shift * from[t] + (t > 0 ? pair[6] * from[t - 1] : REAL(0)) +
                                             (t <= BRA_ORDER ? (t + 1) * from[t + 1] : REAL(0));
            }
    for (int n = 0; n < BRA_HERMITES; ++n) h[n] = 0;
    for (int n = 0; n < 3 * BRA_SLOPES; ++n) k[n] = 0;
    for (int m = 0; m < BRA_PRODUCTS; ++m) {
        const int *i = powers_a + 3 * (m / NB), *j = powers_b + 3 * (m % NB);
        REAL value[3][BRA_ORDER + 1], slope[3][BRA_ORDER + 1];
        for (int x = 0; x < 3; ++x)
            for (int t = 0; t <= i[x] + j[x]; ++t) {
                value[x][t] = e[x][i[x]][j[x]][t];
                slope[x][t] = (i[x] > 0 ? i[x] * (pair[7] - 1) * e[x][i[x] - 1][j[x]][t] : REAL(0)) +
                              (j[x] > 0 ? j[x] * pair[7] * e[x][i[x]][j[x] - 1][t] : REAL(0));
            }
        for (int t = 0; t <= i[0] + j[0]; ++t)
            for (int u = 0; u <= i[1] + j[1]; ++u)
                for (int v = 0; v <= i[2] + j[2]; ++v) {
                    const int n = number[(t * (BRA_ORDER + 1) + u) * (BRA_ORDER + 1) + v];
                    const REAL x = gamma[m] * value[0][t], y = value[1][u], z = value[2][v];
                    h[n] = fma(x * y, z, h[n]);
                    if (t + u + v >= BRA_ORDER) continue;
                    k[n] = fma(gamma[m] * slope[0][t] * y, z, k[n]);
                    k[BRA_SLOPES + n] = fma(x * slope[1][u], z, k[BRA_SLOPES + n]);
                    k[2 * BRA_SLOPES + n] = fma(x * y, slope[2][v], k[2 * BRA_SLOPES + n]);
                }
    }
}
#endif

// A product of the ket's functions: its powers, its two-particle density, and its expansion for one primitive.
struct Product {
    int i[3], j[3];
    REAL gamma[BRA_PRODUCTS];
    REAL value[3][KET_ORDER + 1], slope[3][KET_ORDER + 1];
};

struct Derivatives {
    REAL energy, total[3], bra[3], ket[3];
};

FN void interact(const Product& f, const REAL* pair, const REAL* R, Derivatives& d) {
    REAL h[BRA_HERMITES], k[3 * BRA_SLOPES + 1];
    expand(pair, f.gamma, h, k);
    for (int t = 0; t <= f.i[0] + f.j[0]; ++t)
        for (int u = 0; u <= f.i[1] + f.j[1]; ++u)
            for (int v = 0; v <= f.i[2] + f.j[2]; ++v) {
                REAL energy = 0, total[3] = {0, 0, 0}, bra[3] = {0, 0, 0};
                contract(R + (t * SIDE + u) * SIDE + v, h, k, energy, total, bra);
                const REAL yz = f.value[1][u] * f.value[2][v], weight = f.value[0][t] * yz;
                d.energy = fma(weight, energy, d.energy);
                UNROLL for (int x = 0; x < 3; ++x) {
                    d.total[x] = fma(weight, total[x], d.total[x]);
                    d.bra[x] = fma(weight, bra[x], d.bra[x]);
                }
                d.ket[0] = fma(f.slope[0][t] * yz, energy, d.ket[0]);
                d.ket[1] = fma(f.value[0][t] * f.slope[1][u] * f.value[2][v], energy, d.ket[1]);
                d.ket[2] = fma(f.value[0][t] * f.value[1][u] * f.slope[2][v], energy, d.ket[2]);
            }
}

FN REAL dot(const REAL* a, const REAL* b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

KERNEL(THREADS) ENTRY(PARAMETERS) {
#if IN_SCRATCH
    REAL* memory = scratch + blockIdx.x * scratch_stride;
#else
    extern __shared__ double shared_memory[];
    REAL* memory = (REAL*)shared_memory;
#endif
    const int lane = threadIdx.x % 32, group = lane / WORKERS, worker = lane % WORKERS;
    const bool member = group < GROUPS;
    REAL* cubes = memory + (threadIdx.x / 32 * GROUPS + (member ? group : 0)) * (2 * CUBE + 1);
    const INDEX items = *count, all = items * columns * ROUNDS, stride = (INDEX)gridDim.x * (THREADS / 32) * GROUPS;
    const Sums target = SUMS(gradient) + blockIdx.x % copies * 3 * atoms;
    for (INDEX first = ((INDEX)blockIdx.x * (THREADS / 32) + threadIdx.x / 32) * GROUPS; first < all; first += stride) {
        const bool there = member && first + group < all;
        const INDEX mine = there ? first + group : first, item = mine % items, rest = mine / items;
        const int q = (int)(rest % columns), round = (int)(rest / columns);
        const INDEX bra = list[2 * item], ket = list[2 * item + 1], block = ket / BLOCK;
        const int *ab = bra_ao + 2 * (bra * columns + q), *cd = ket_ao + 2 * ket;
        const INDEX a = place[ab[0]], b = place[ab[1]], c = place[cd[0]], d = place[cd[1]];

        Product product[FUNCTIONS_EACH];
        NO_UNROLL for (int n = 0; n < FUNCTIONS_EACH; ++n) {
            Product& f = product[n];
            const int number = (round * FUNCTIONS_EACH + n) * WORKERS + worker;
            const bool used = there && number < KET_PRODUCTS;
            const int i = used ? number / ND : 0, j = used ? number % ND : 0;
            UNROLL for (int x = 0; x < 3; ++x) {
                f.i[x] = used ? powers_c[3 * i + x] : 0;
                f.j[x] = used ? powers_d[3 * j + x] : 0;
            }
            UNROLL for (int m = 0; m < BRA_PRODUCTS; ++m) f.gamma[m] = 0;
            for (INDEX spin = 0; used && spin < densities; ++spin) {
                const double* C = D + (spin * size + c + i) * size;  // D is symmetric
                const double* E = D + (spin * size + d + j) * size;
                UNROLL for (int m = 0; m < NA; ++m)
                    UNROLL for (int n = 0; n < NB; ++n)
                        f.gamma[m * NB + n] += REAL(C[a + m] * E[b + n] + E[a + m] * C[b + n]);
            }
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
        const int bra_count = there ? bra_first[bra + 1] - bra_first[bra] : 0;
        const int ket_count = there ? ket_first[block + 1] - ket_first[block] : 0;
        const REAL largest = bras[SIZE];

        REAL on_a[3] = {0, 0, 0}, on_c[3] = {0, 0, 0}, total[3] = {0, 0, 0};
        for (int l = 0;; ++l) {
            const REAL* other = kets + (l < ket_count ? l : 0) * KET_FIELDS * BLOCK;
            const REAL ket_size = other[SIZE * BLOCK];
            const bool more = l < ket_count && largest * ket_size >= REAL(cutoff), some = more && other[4 * BLOCK] != 0;
            if (!__any_sync(0xffffffffu, more)) break;
            const REAL inverse_q = other[0], h_q = REAL(0.5) * inverse_q;
            REAL QC[3], QD[3];
            UNROLL for (int x = 0; x < 3; ++x) {
                QC[x] = other[(5 + x) * BLOCK];
                QD[x] = other[(8 + x) * BLOCK];
            }
            const REAL share_c = dot(QD, CD) * inverse_cd;
            NO_UNROLL for (int n = 0; n < FUNCTIONS_EACH; ++n)
                UNROLL for (int x = 0; x < 3; ++x)
                    along_axis(product[n].i[x], product[n].j[x], QC[x], QD[x], h_q, share_c, product[n].value[x],
                               product[n].slope[x]);
            for (int k = 0;; ++k) {
                const REAL* mine = bras + (k < bra_count ? k : 0) * BRA_FIELDS;
                const bool alive = some && k < bra_count && mine[SIZE] * ket_size >= REAL(cutoff);
                if (!__any_sync(0xffffffffu, alive)) break;
                REAL X[3], base[ORDER + 1], pair[8];
                UNROLL for (int x = 0; x < 3; ++x)
                    X[x] = (mine[1 + x] - other[(1 + x) * BLOCK]) + (mine[11 + x] - other[(11 + x) * BLOCK]);
                UNROLL for (int n = 0; n < 7; ++n) pair[n] = mine[4 + n];
                const REAL share_a = dot(pair + 3, AB) * inverse_ab;
                pair[7] = share_a;
                if (alive) {
                    const REAL root = vrsqrt(1 + mine[0] * inverse_q), rho = mine[0] * root * root;
                    boys<ORDER>(rho * dot(X, X), boys_table, base);
                    REAL factor = root * other[4 * BLOCK] * coefficient[k * columns];
                    UNROLL for (int n = 0; n <= ORDER; ++n) {
                        base[n] *= factor;
                        factor *= -2 * rho;
                    }
                }
                build_r(X, base, cubes, worker, alive);
                if (alive) {
                    Derivatives all = {};
                    NO_UNROLL for (int n = 0; n < FUNCTIONS_EACH; ++n) interact(product[n], pair, cubes, all);
                    const REAL twist_ab = all.energy * share_a * (1 - share_a) / pair[6];  // 2ab/p E
                    const REAL twist_cd = all.energy * share_c * (1 - share_c) / h_q;
                    UNROLL for (int x = 0; x < 3; ++x) {
                        total[x] += all.total[x];
                        on_a[x] += share_a * all.total[x] + all.bra[x] - twist_ab * AB[x];
                        on_c[x] += all.ket[x] - share_c * all.total[x] - twist_cd * CD[x];
                    }
                }
                if (WORKERS > 1) __syncwarp();
            }
        }

        UNROLL for (int x = 0; x < 3; ++x) {
            if (!member) break;
            cubes[9 * worker + x] = on_a[x];
            cubes[9 * worker + 3 + x] = on_c[x];
            cubes[9 * worker + 6 + x] = total[x];
        }
        __syncwarp();
        const double weight = !there ? 0.0 : same && bra_pair[bra] == ket_pair[ket] ? 0.5 : 1.0;
        for (int x = worker; there && x < 3; x += WORKERS) {
            double of_a = 0, of_c = 0, of_all = 0;
            for (int n = 0; n < WORKERS; ++n) {
                of_a += cubes[9 * n + x];
                of_c += cubes[9 * n + 3 + x];
                of_all += cubes[9 * n + 6 + x];
            }
            ADD(target + 3 * atom[a] + x, weight * of_a);
            ADD(target + 3 * atom[b] + x, weight * (of_all - of_a));
            ADD(target + 3 * atom[c] + x, weight * of_c);
            ADD(target + 3 * atom[d] + x, weight * (-of_all - of_c));
        }
        __syncwarp();
    }
}
