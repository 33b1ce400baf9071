// The derivative of the energy with respect to atoms (grid_gradient_cpu.h has the formulas); arrays are
// [component][task][function][point], components of `values` those of ORDER 1 (LDA) or 2.

#ifdef KERNEL_RIGHT
// The right-hand sides, which the density matrix is multiplied by, one thread per element.
extern "C" __global__ void __launch_bounds__(ELEMENT_THREADS) ENTRY(PARAMETERS) {
    const INDEX e = (INDEX)blockIdx.x * ELEMENT_THREADS + threadIdx.x;
    const REAL *at = values + e, *v = potential + task_point[e / (rows * points)] + e % points;
    REAL sum = 4 * v[0] * at[0];
#if GRADIENT
    const INDEX component = tasks * rows * points;
    UNROLL for (int c = 1; c < 4; ++c) {
        const REAL slope = at[c * component], v_c = 2 * v[c * stride];
        sum = vfma(v_c, slope, sum);
#if KINETIC
        weighed[c * component + e] = vfma(v_c, at[0], 4 * v[4 * stride] * slope);
#endif
    }
#endif
    weighed[e] = sum;
}
#endif

#ifdef KERNEL_FORCE
// A block per function of a task adds the sum over points to the gradient of its atom; the sums over functions at each point
// are computed later from `force` [axis][task][function][point]. For GGA product[1] = D chi.
extern "C" __global__ void __launch_bounds__(ROW_THREADS) ENTRY(PARAMETERS) {
    const INDEX t = blockIdx.x / rows, p = blockIdx.x % rows, component = tasks * rows * points;
    const bool used = p < task_functions[t];
    REAL sum[3] = {0, 0, 0};
    for (INDEX g = threadIdx.x; g < points; g += ROW_THREADS) {
        const INDEX e = blockIdx.x * points + g;
        const REAL *at = values + e, *L = product + e;
#if GRADIENT && !KINETIC
        const REAL* v = potential + task_point[t] + g;
#endif
        UNROLL for (int x = 0; x < 3; ++x) {
            REAL f = at[(1 + x) * component] * L[0];
#if GRADIENT
            UNROLL for (int c = 0; c < 3; ++c) {
                const int low = c < x ? c : x, high = c < x ? x : c;
                const REAL second = at[(4 + low * (5 - low) / 2 + high) * component];
#if KINETIC
                f = vfma(second, L[(1 + c) * component], f);
#else
                f = vfma(second, 2 * v[(1 + c) * stride] * L[component], f);
#endif
            }
#endif
            force[x * component + e] = f;
            sum[x] += f;
        }
    }
    for (int x = 0; x < 3; ++x) {
        const REAL total = team_sum(sum[x]);
        if (used && threadIdx.x == 0) ADD(SUMS(out) + 3 * function_atom[ao[task_ao[t] + p]] + x, -total);
    }
}
#endif

#ifdef KERNEL_ATOMS
// Add the sums over functions of `force` to the gradients of the atoms which the points move with.
extern "C" __global__ void __launch_bounds__(ELEMENT_THREADS) ENTRY(PARAMETERS) {
    FOR_ITEMS(item) {
        const INDEX t = item / points, g = item % points, component = tasks * rows * points;
        const int atom = own[task_point[t] + g];
        UNROLL for (int x = 0; x < 3; ++x) {
            const REAL* f = force + x * component + t * rows * points + g;
            REAL sum = 0;
            for (INDEX p = 0; p < rows; ++p) sum += f[p * points];
            ADD(SUMS(out) + 3 * atom + x, sum);
        }
    }
}
#endif
