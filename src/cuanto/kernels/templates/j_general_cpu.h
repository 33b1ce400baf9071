// The J engine on the CPU for any class: orders are arguments, R_tuv is stored in a cube of side L + 1, so that the
// offset of R_(t+s) is the sum of those of t and s. One buffer is enough: R of order n follows from lower degrees of
// order n + 1, hence the highest degrees are overwritten first.
// tuples: rows (t, u, v, axis to lower, power left, ...) by rising degree.
extern "C" void ENTRY(PARAMETERS) {
    const int order = bra_order + ket_order, side = order + 1;
    const int bra_count = (bra_order + 1) * (bra_order + 2) * (bra_order + 3) / 6;
    const int ket_count = (ket_order + 1) * (ket_order + 2) * (ket_order + 3) / 6;
    const int count = (order + 1) * (order + 2) * (order + 3) / 6, width = densities * bra_count;
    const int fields = GEOMETRY + densities * ket_count;
    const int stride[3] = {side * side, side, 1};
    VEC* R = lane_memory((INDEX)side * side * side + width + 2 * BOYS_MAX_ORDER);
    VEC* acc = R + side * side * side;
    VEC* base = acc + width;
    int* place = (int*)uniform_memory(count);
    for (int k = 0; k < count; ++k)
        place[k] = (tuples[8 * k] * side + tuples[8 * k + 1]) * side + tuples[8 * k + 2];
    for (INDEX b = begin; b < end; ++b) {
        const REAL* bra = bra_record + b * GEOMETRY;
        double* total = out + b * width;
        for (int j = 0; j < width; ++j) total[j] = 0;
        for (INDEX k = ket_begin[b]; k < ket_end[b]; ++k) {
            for (int j = 0; j < width; ++j) acc[j] = VEC{};
            for (int lane = 0; lane < KETS; lane += LANES) {
                const REAL* ket = ket_record + k * fields * KETS + lane;
                VEC X[3];
                j_base_any(order, bra, ket, boys_table, X, base);
                for (int n = order; n >= 0; --n) {
                    const int degree = order - n;
                    for (int j = (degree + 1) * (degree + 2) * (degree + 3) / 6 - 1; j > 0; --j) {
                        const int axis = tuples[8 * j + 3], power = tuples[8 * j + 4];
                        const VEC* once = R + place[j] - stride[axis];
                        VEC value = X[axis] * once[0];
                        if (power > 0) value = vfma(REAL(power), once[-stride[axis]], value);
                        R[place[j]] = value;
                    }
                    R[0] = base[n];
                }
                for (int d = 0; d < densities; ++d) {
                    const REAL* H = ket + (GEOMETRY + d * ket_count) * KETS;
                    VEC* target = acc + d * bra_count;
                    int t = 0;
                    for (; t + 4 <= bra_count; t += 4) {  // four sums use each loaded density
                        const VEC *from0 = R + place[t], *from1 = R + place[t + 1];
                        const VEC *from2 = R + place[t + 2], *from3 = R + place[t + 3];
                        VEC sum0 = target[t], sum1 = target[t + 1], sum2 = target[t + 2], sum3 = target[t + 3];
                        for (int s = 0; s < ket_count; ++s) {
                            const VEC h = vload(H + s * KETS);
                            sum0 = vfma(h, from0[place[s]], sum0);
                            sum1 = vfma(h, from1[place[s]], sum1);
                            sum2 = vfma(h, from2[place[s]], sum2);
                            sum3 = vfma(h, from3[place[s]], sum3);
                        }
                        target[t] = sum0, target[t + 1] = sum1, target[t + 2] = sum2, target[t + 3] = sum3;
                    }
                    for (; t < bra_count; ++t)
                        for (int s = 0; s < ket_count; ++s)
                            target[t] = vfma(vload(H + s * KETS), R[place[t] + place[s]], target[t]);
                }
            }
            for (int j = 0; j < width; ++j) total[j] += vsum(acc[j]);
        }
    }
}
