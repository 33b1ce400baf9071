// Kernels before and after the products of a batch; arrays are [component][task][function][point]. The functions of a task are
// ao[task_ao[task] + p], p < task_functions[task], padded with zeros to `rows`. Where a matrix is read or written, a block
// processes one row of one task.

#if defined(KERNEL_GATHER_MATRIX) || defined(KERNEL_SCATTER)
// part[task][p][q] = D[ao p][ao q], or sums[ao p][ao q] += part[task][p][q]
extern "C" __global__ void __launch_bounds__(ROW_THREADS) ENTRY(PARAMETERS) {
    const INDEX t = blockIdx.x / rows, p = blockIdx.x % rows;
    const int functions = task_functions[t], *list = ao + task_ao[t];
#ifdef KERNEL_SCATTER
    if (p >= functions) return;
    const REAL* row = part + blockIdx.x * rows;
    const Sums place = SUMS(out) + list[p] * nbf;
    for (int q = threadIdx.x; q < functions; q += ROW_THREADS) ADD(place + list[q], row[q]);
#else
    REAL* row = part + blockIdx.x * columns;
    const REAL* source = given + (p < functions ? list[p] : 0) * width;
    for (int q = threadIdx.x; q < columns; q += ROW_THREADS)
        row[q] = p < functions && q < functions ? source[list[q]] : REAL(0);
#endif
}
#endif

#ifdef KERNEL_GATHER_ORBITALS
// part[task][p][i] = C[ao p][i]
extern "C" __global__ void __launch_bounds__(ROW_THREADS) ENTRY(PARAMETERS) {
    const INDEX t = blockIdx.x / rows, p = blockIdx.x % rows;
    const bool used = p < task_functions[t];
    const REAL* source = given + (used ? ao[task_ao[t] + p] : 0) * width;
    for (int i = threadIdx.x; i < columns; i += ROW_THREADS) part[blockIdx.x * columns + i] = used ? source[i] : REAL(0);
}
#endif

#ifdef KERNEL_GATHER_TRANSPOSED
// part[task][i][p] = C[ao p][i]
extern "C" __global__ void __launch_bounds__(ROW_THREADS) ENTRY(PARAMETERS) {
    const INDEX t = blockIdx.x / width, i = blockIdx.x % width;
    const int functions = task_functions[t], *list = ao + task_ao[t];
    for (int p = threadIdx.x; p < columns; p += ROW_THREADS)
        part[blockIdx.x * columns + p] = p < functions ? given[list[p] * width + i] : REAL(0);
}
#endif

#ifdef KERNEL_DENSITY
// out[component][point]: sums over functions (or orbitals) of values times products. Only with KINETIC have products
// as many components as values. Lines of DENSITY_POINTS threads share the functions.
#define LINES (ELEMENT_THREADS / DENSITY_POINTS)
extern "C" __global__ void __launch_bounds__(ELEMENT_THREADS) ENTRY(PARAMETERS) {
    __shared__ REAL shared[COMPONENTS][LINES][DENSITY_POINTS];
    const int lane = threadIdx.x % DENSITY_POINTS, line = threadIdx.x / DENSITY_POINTS;
    const INDEX across = points / DENSITY_POINTS, t = blockIdx.x / across;
    const INDEX p = blockIdx.x % across * DENSITY_POINTS + lane, component = tasks * rows * points;
    const REAL *value = values + (t * rows + line) * points + p, *other = product + (t * rows + line) * points + p;
    REAL sum[COMPONENTS];
    UNROLL for (int c = 0; c < COMPONENTS; ++c) sum[c] = 0;
    for (INDEX f = line; f < rows; f += LINES, value += LINES * points, other += LINES * points) {
        const REAL X = *other;
        sum[0] = vfma(*value, X, sum[0]);
#if GRADIENT
        UNROLL for (int x = 1; x < 4; ++x) {
            const REAL d = value[x * component];
            sum[x] = vfma(d, X, sum[x]);
#if KINETIC
            sum[4] = vfma(d, other[x * component], sum[4]);
#endif
        }
#endif
    }
    UNROLL for (int c = 0; c < COMPONENTS; ++c) shared[c][line][lane] = sum[c];
    __syncthreads();
    for (int c = line; c < COMPONENTS; c += LINES) {
        REAL total = 0;
        for (int i = 0; i < LINES; ++i) total += shared[c][i][lane];
        out[c * stride + task_point[t] + p] = c == 0 ? total : c < 4 ? 2 * total : REAL(0.5) * total;
    }
}
#endif

#ifdef KERNEL_WEIGH
// weighed[task][point][function] = v_0 chi + v . grad chi; with KINETIC also v_tau grad chi, as further components. A block
// transposes a square of SIDE functions by SIDE points, so that all memory access is coalesced.
#define SIDE 32
#define ROWS_AT_ONCE (ELEMENT_THREADS / SIDE)
extern "C" __global__ void __launch_bounds__(ELEMENT_THREADS) ENTRY(PARAMETERS) {
    __shared__ REAL square[SIDE][SIDE + 1];
    const INDEX across = points / SIDE, squares = across * (rows / SIDE), component = tasks * rows * points;
    const INDEX t = blockIdx.x / squares, f0 = blockIdx.x % squares / across * SIDE, p0 = blockIdx.x % across * SIDE;
    const int lane = threadIdx.x % SIDE, row = threadIdx.x / SIDE;
    const REAL *v = potential + task_point[t] + p0 + lane, *value = values + (t * rows + f0) * points + p0 + lane;
    REAL* place = weighed + (t * points + p0) * rows + f0 + lane;
    for (int c = 0; c < (KINETIC ? 4 : 1); ++c) {
        for (int f = row; f < SIDE; f += ROWS_AT_ONCE) {
            const REAL* at = value + f * points;
            REAL sum = c == 0 ? v[0] * at[0] : v[4 * stride] * at[c * component];
#if GRADIENT
            if (c == 0) UNROLL for (int x = 1; x < 4; ++x) sum = vfma(v[x * stride], at[x * component], sum);
#endif
            square[f][lane] = sum;
        }
        __syncthreads();
        for (int p = row; p < SIDE; p += ROWS_AT_ONCE) place[c * component + p * rows] = square[lane][p];
        __syncthreads();
    }
}
#endif
