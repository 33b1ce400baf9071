// F_AB -= factor sum_ns (mn|ls) D_ns of one pair and spin, with the products of B, which are contiguous in a row of G, in the
// lanes. The last vector of a row overlaps with the one before it: its first lanes count as zero. Rows are far apart in memory;
// the block of the next pair, which follows in each of them, is fetched ahead.
constexpr int WIDE = (NB2 + LANES - 1) / LANES;
static_assert(NB2 >= LANES, "a row fills a vector");
FN constexpr int column(int w) { return w + 1 < WIDE ? w * LANES : NB2 - LANES; }
FN constexpr int place(int u) { return u < (WIDE - 1) * LANES ? u : u + WIDE * LANES - NB2; }

template <class P> FN void exchange_block(const double* G, INDEX products, P D, INDEX orbitals, double factor, double* K) {
    double of_first[NA][WIDE * LANES] = {}, of_second[NA][WIDE * LANES] = {};  // D of the orbitals of every product
    for (int n = 0; n < NA; ++n) {
        double part[NB];
        for (int l = 0; l < NB; ++l) part[l] = factor * D[n * orbitals + l];
        UNROLL for (int u = 0; u < NB2; ++u) {
            of_first[n][place(u)] = first_of_b[u] == second_of_b[u] ? 0 : part[first_of_b[u]];
            of_second[n][place(u)] = part[second_of_b[u]];
        }
    }
    int product[NA][NA];
    for (int t = 0; t < NA2; ++t) product[first_of_a[t]][second_of_a[t]] = product[second_of_a[t]][first_of_a[t]] = t;
    for (int m = 0; m < NA; ++m) {
        VEC to_first[WIDE] = {}, to_second[WIDE] = {};
        for (int n = 0; n < NA; ++n) {
            const double* row = G + product[m][n] * products;
            UNROLL for (int w = 0; w < WIDE; ++w) {
                const VEC g = vload(row + column(w));
                if (n >= m) __builtin_prefetch(row + NB2 + w * LANES);
                to_first[w] = vfma(g, vload(of_second[n] + w * LANES), to_first[w]);
                to_second[w] = vfma(g, vload(of_first[n] + w * LANES), to_second[w]);
            }
        }
        double first[WIDE * LANES], second[WIDE * LANES], sum[NB] = {};
        UNROLL for (int w = 0; w < WIDE; ++w) {
            vstore(first + w * LANES, to_first[w]);
            vstore(second + w * LANES, to_second[w]);
        }
        UNROLL for (int u = 0; u < NB2; ++u) {
            sum[first_of_b[u]] += first[place(u)];
            sum[second_of_b[u]] += second[place(u)];
        }
        for (int l = 0; l < NB; ++l) K[m * NB + l] = -sum[l];
    }
}
