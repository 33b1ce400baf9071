// Core repulsion of a pair (R in Bohr; Hartree). `pair`: alpha, x, 1 where the exponent is alpha R^2, factor of the
// carbon-carbon term (PM6), or whether f of A or of B is multiplied by R (MNDO and its relatives).
template <class V> FN V core_repulsion(V R, const VEC* a, const VEC* b, const VEC* pair, Model model) {
    const V r = R * model.bohr, step = inverse(r);
    const VEC rho = a[ADDITIVE] + b[ADDITIVE], charges = a[CHARGE] * b[CHARGE];
    const V gamma = inverse_distance(R, rho * rho);
    V energy;
    if (model.pm6) {
        const V square = r * r, sixth = square * square * square;
        const V plain = (r + sixth * REAL(0.0003)) * pair[0];
        const V exponent = choose(pair[2] > REAL(0.5), square * pair[0], plain);
        const V factor = exponential(exponent * REAL(-1)) * (pair[1] * REAL(2)) + REAL(1);
        energy = gamma * (factor + exponential(r * REAL(-5.983752)) * pair[3]) * charges;
        const V ratio = (a[ROOT] + b[ROOT]) * step, cube = ratio * ratio * ratio, twice = cube * cube;
        energy = energy + keep_where(value_of(ratio) * REAL(3) > REAL(1), twice * twice * REAL(1e-8 / model.hartree));
    } else {
        const V f_a = exponential(r * a[ALPHA] * REAL(-1)), f_b = exponential(r * b[ALPHA] * REAL(-1));
        const V g_a = choose(pair[0] > REAL(0.5), f_a * r, f_a), g_b = choose(pair[1] > REAL(0.5), f_b * r, f_b);
        energy = gamma * (g_a + g_b + REAL(1)) * charges;
    }
    const REAL farthest = model.pm6 ? REAL(1e9) : REAL(25);  // of the exponents that count
    V extra = number<V>(0);
    NO_UNROLL for (int k = 0; k < model.gaussians; ++k) {
        const int at = GAUSSIAN + 3 * k;
        const V da = r - a[at + 2], db = r - b[at + 2];
        const V xa = da * da * a[at + 1], xb = db * db * b[at + 1];
        extra = extra + keep_where(value_of(xa) < farthest, exponential(xa * REAL(-1)) * a[at]);
        extra = extra + keep_where(value_of(xb) < farthest, exponential(xb * REAL(-1)) * b[at]);
    }
    return energy + extra * step * (charges * REAL(1 / model.hartree));
}
