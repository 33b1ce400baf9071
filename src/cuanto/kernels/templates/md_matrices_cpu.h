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
