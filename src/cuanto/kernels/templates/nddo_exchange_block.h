// F_AB -= factor sum_ns (mn|ls) D_ns of one pair and spin; G is the block of A's products with B's.
template <class P> FN void exchange_block(const double* G, INDEX products, P D, INDEX orbitals, double factor, double* K) {
    UNROLL for (int i = 0; i < NA * NB; ++i) K[i] = 0;
    double part[NA][NB];
    UNROLL for (int i = 0; i < NA; ++i) UNROLL for (int k = 0; k < NB; ++k) part[i][k] = factor * D[i * orbitals + k];
    EXCHANGE_LOOP for (int t = 0; t < NA2; ++t) {
        const int m = first_of_a[t], n = second_of_a[t];
        const double* row = G + t * products;
        EXCHANGE_LOOP for (int u = 0; u < NB2; ++u) {
            const int l = first_of_b[u], s = second_of_b[u];
            const double g = row[u];
            K[m * NB + l] -= g * part[n][s];
            if (l != s) K[m * NB + s] -= g * part[n][l];
            if (m != n) {
                K[n * NB + l] -= g * part[m][s];
                if (l != s) K[n * NB + s] -= g * part[m][l];
            }
        }
    }
}
