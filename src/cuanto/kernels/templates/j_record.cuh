// Records of kets in the order in which they are met: geometry, then the densities times `factor`.
extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS) {
    const int width = densities * tuples, fields = GEOMETRY + width;
    const INDEX item = (INDEX)blockIdx.x * THREADS + threadIdx.x;
    if (item >= kets * fields) return;
    const INDEX ket = order[item / fields];
    const int field = (int)(item % fields), w = field - GEOMETRY;
    record[item] = w < 0 ? geometry[ket * GEOMETRY + field]
                         : REAL(H[ket * width + w] * factor[ket * tuples + w % tuples]);
}
