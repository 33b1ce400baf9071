// Core repulsion of a pair (R in Bohr; Hartree). Fields of `pair`:
// 0-7 of PM6: alpha, x, 1 if the exponent is alpha R^2, factor of R^6 in the exponent, and c, u, v, m of a term
// c exp(-(u + v d) d), d = R - m; 0-5 of MNDO and its relatives, for A and for B: factor, alpha, 1 if multiplied by R;
// 8, 9: weights of the Gaussians of A and of B; from 10 on: Gaussians of the pair.
template <class V> FN V gaussian(V r, const VEC* term, REAL farthest) {
    const V d = r - term[2], x = d * d * term[1];
    return keep_where(value_of(x) < farthest, exponential(x * REAL(-1)) * term[0]);
}

template <class V> FN V core_repulsion(V R, const VEC* a, const VEC* b, const VEC* pair, Model model) {
    const V r = R * model.bohr, step = inverse(r);
    const VEC rho = a[RHO_CORE] + b[RHO_CORE], charges = a[CHARGE] * b[CHARGE];
    const V gamma = inverse_distance(R, rho * rho);
    V energy;
    if (model.pm6) {
        const V square = r * r, sixth = square * square * square;
        const V plain = (r + sixth * pair[3]) * pair[0];
        const V exponent = choose(pair[2] > REAL(0.5), square * pair[0], plain);
        const V factor = exponential(exponent * REAL(-1)) * (pair[1] * REAL(2)) + REAL(1);
        const V d = r - pair[7];
        energy = gamma * (factor + exponential((d * pair[6] + pair[5]) * d * REAL(-1)) * pair[4]) * charges;
        const V ratio = (a[ROOT] + b[ROOT]) * step, cube = ratio * ratio * ratio, twice = cube * cube;
        energy = energy + keep_where(value_of(ratio) * REAL(3) > REAL(1), twice * twice * REAL(1e-8 / model.hartree));
    } else {
        const V f_a = exponential(r * pair[1] * REAL(-1)) * pair[0], f_b = exponential(r * pair[4] * REAL(-1)) * pair[3];
        const V g_a = choose(pair[2] > REAL(0.5), f_a * r, f_a), g_b = choose(pair[5] > REAL(0.5), f_b * r, f_b);
        energy = gamma * (g_a + g_b + REAL(1)) * charges;
    }
    const REAL farthest = model.pm6 ? REAL(1e9) : REAL(25);  // of the exponents that count
    V extra = number<V>(0);
    NO_UNROLL for (int k = 0; k < model.gaussians; ++k) {
        const int at = GAUSSIAN + 3 * k;
        extra = extra + gaussian(r, a + at, farthest) * pair[8] + gaussian(r, b + at, farthest) * pair[9];
    }
    NO_UNROLL for (int k = 0; k < model.extras; ++k) extra = extra + gaussian(r, pair + 10 + 3 * k, farthest);
    return energy + extra * step * (charges * REAL(1 / model.hartree));
}
