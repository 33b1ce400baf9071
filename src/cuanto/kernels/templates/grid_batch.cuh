// Around the products of a batch; arrays are [component][task][function][point], task_ao [task][function] has -1 where
// a task has no more functions.
#define FIRST_THREAD ((INDEX)blockIdx.x * blockDim.x + threadIdx.x)

#ifdef KERNEL_GATHER_MATRIX
// part[task][p][q] = D[ao p][ao q]
extern "C" __global__ void __launch_bounds__(ELEMENT_THREADS) ENTRY(PARAMETERS) {
    const INDEX i = FIRST_THREAD;
    if (i >= tasks * rows * columns) return;
    const INDEX t = i / (rows * columns), p = i / columns % rows, q = i % columns;
    const int a = task_ao[t * rows + p], b = task_ao[t * rows + q];
    part[i] = a < 0 || b < 0 ? REAL(0) : given[a * width + b];
}
#endif

#ifdef KERNEL_GATHER_ORBITALS
// part[task][p][i] = C[ao p][i]
extern "C" __global__ void __launch_bounds__(ELEMENT_THREADS) ENTRY(PARAMETERS) {
    const INDEX i = FIRST_THREAD;
    if (i >= tasks * rows * columns) return;
    const int a = task_ao[i / columns];
    part[i] = a < 0 ? REAL(0) : given[a * width + i % columns];
}
#endif

#ifdef KERNEL_GATHER_TURNED
// part[task][i][p] = C[ao p][i]
extern "C" __global__ void __launch_bounds__(ELEMENT_THREADS) ENTRY(PARAMETERS) {
    const INDEX i = FIRST_THREAD;
    if (i >= tasks * rows * columns) return;
    const int a = task_ao[i / (rows * columns) * rows + i % rows];
    part[i] = a < 0 ? REAL(0) : given[a * width + i / rows % columns];
}
#endif

#ifdef KERNEL_DENSITY
// out[component][point]: sums over functions (or orbitals) of values times products. Only with KINETIC have products
// as many components as values.
extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS) {
    const INDEX i = FIRST_THREAD, t = i / points, p = i % points, component = tasks * rows * points;
    const REAL *value = values + t * rows * points + p, *other = product + t * rows * points + p;
    REAL rho = 0, slope[3] = {0, 0, 0}, tau = 0;
    for (INDEX f = 0; f < rows; ++f, value += points, other += points) {
        const REAL X = *other;
        rho = vfma(*value, X, rho);
#if GRADIENT
        UNROLL for (int x = 0; x < 3; ++x) {
            const REAL d = value[(x + 1) * component];
            slope[x] = vfma(d, X, slope[x]);
#if KINETIC
            tau = vfma(d, other[(x + 1) * component], tau);
#endif
        }
#endif
    }
    REAL* place = out + task_point[t] + p;
    place[0] = rho;
#if GRADIENT
    UNROLL for (int x = 0; x < 3; ++x) place[(x + 1) * stride] = 2 * slope[x];
#endif
#if KINETIC
    place[4 * stride] = REAL(0.5) * tau;
#endif
}
#endif

#ifdef KERNEL_WEIGH
// weighed[task][point][function] = v_0 chi + v . grad chi; with KINETIC also v_tau grad chi, as further components. A block
// turns a square of SIDE functions by SIDE points over, so that all reading and writing is in order.
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

#ifdef KERNEL_SCATTER
// out[ao p][ao q] += part[task][p][q]
extern "C" __global__ void __launch_bounds__(ELEMENT_THREADS) ENTRY(PARAMETERS) {
    const INDEX i = FIRST_THREAD;
    if (i >= tasks * rows * rows) return;
    const INDEX t = i / (rows * rows), p = i / rows % rows, q = i % rows;
    const int a = task_ao[t * rows + p], b = task_ao[t * rows + q];
    if (a >= 0 && b >= 0) atomicAdd(out + a * nbf + b, (double)part[i]);
}
#endif
