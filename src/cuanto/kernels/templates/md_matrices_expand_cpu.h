// Coefficients E of all primitive pairs of a class, as bras.
KERNEL(1) ENTRY(PARAMETERS) {
    const PairPlan* plan = (const PairPlan*)plans;
    REAL axes[3 * 10 * 10 * 19];
    FOR_ITEMS(k) {
        const PairPlan& mine = plan[parity[k]];
        const REAL* from = bra_record + k * BRA_FIELDS;
        const int la = (int)mine.la, lb = (int)mine.lb, size = (la + 1) * (lb + 1) * (la + lb + 1);
        for (int i = 0; i < 3; ++i) expansion<REAL>(la, lb, from[4 + i], from[7 + i], from[10], axes + i * size);
        coefficients<REAL>(mine, axes, out + start[k]);
    }
}
