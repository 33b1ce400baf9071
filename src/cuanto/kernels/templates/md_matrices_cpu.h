// (ab|cd) by McMurchie and Davidson as products of small matrices (kernels/md_matrices.py): for every primitive quartet
// T = E_bra R, summed over the primitives of the bra, then (ab|cd) += T E_ket. Lanes are kets. A block of 5 x COLUMNS_AT_ONCE
// products is summed in registers.
enum { PANEL = 5 };
#if CUANTO_BYTES == 64 || defined(__AVX512VL__) || defined(__aarch64__)  // 32 registers
enum { COLUMNS_AT_ONCE = 5 };
#else
enum { COLUMNS_AT_ONCE = 2 };
#endif
enum { HALFWAY = 3072 };  // vectors of T at once, which stay in the L2 cache

// E_t^{ij} along one axis (Helgaker, Jorgensen, Olsen, eqs. 9.5.6-9.5.7), [i][j][t]
template <class T> static void expansion(int la, int lb, T PA, T PB, T h, T* E) {
    const int n = la + lb + 1;
    for (int i = 0; i <= la; ++i)
        for (int j = 0; j <= lb; ++j) {
            T* target = E + (i * (lb + 1) + j) * n;
            if (i + j == 0) {
                target[0] = h * REAL(0) + REAL(1);
                continue;
            }
            const T* from = i > 0 ? target - (lb + 1) * n : target - n;
            const T shift = i > 0 ? PA : PB;
            for (int t = 0; t <= i + j; ++t) {
                T sum = h * REAL(0);
                if (t > 0) sum = sum + h * from[t - 1];
                if (t < i + j) sum = sum + shift * from[t];
                if (t + 1 < i + j) sum = sum + REAL(t + 1) * from[t + 1];
                target[t] = sum;
            }
        }
}

// All coefficients of a primitive pair from its expansions along the axes.
template <class T> static void coefficients(const PairPlan& plan, const T* E, T* out) {
    const int* factor = plan.factors;
    const double* weight = plan.weights;
    for (INDEX e = 0; e < plan.coefficients; ++e) {
        T sum = E[0] * REAL(0);
        for (int k = plan.first[e + 1] - plan.first[e]; k > 0; --k, factor += 3, ++weight)
            sum += REAL(*weight) * (E[factor[0]] * E[factor[1]] * E[factor[2]]);
        out[e] = sum;
    }
}
