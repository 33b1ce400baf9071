// Rows of a class: out[row][group][plane][lane], GROUP columns in a group. With `triangle` rows and columns are the
// same pairs: a row ends with the group of its own column, whose element is halved, and those beyond are zero, so that
// adding the matrix and its transpose gives the whole.
#if RELATIVISTIC
#define PLANES 8
#else
#define PLANES 1
#endif
extern "C" void ENTRY(PARAMETERS) {
    const INDEX groups = (columns + GROUP - 1) / GROUP;
    REAL lane_number[LANES];
    for (int i = 0; i < LANES; ++i) lane_number[i] = i;
    const VEC lanes = vload(lane_number);
    for (INDEX row = row_begin; row < row_end; ++row) {
        const REAL* mine = row_record + row * 8;
        const INDEX used = triangle ? row / GROUP + 1 : groups;
        for (INDEX group = 0; group < used; ++group) {
            REAL* place = out + (row * groups + group) * (PLANES * GROUP);
            const REAL* record = column_record + group * (8 * GROUP);
            for (int lane = 0; lane < GROUP; lane += LANES) {
                VEC column[8], weight = vset(1);
                for (int field = 0; field < 8; ++field) column[field] = vload(record + field * GROUP + lane);
                if (triangle && group + 1 == used) {
                    const VEC ahead = vset(REAL(row - group * GROUP - lane)) - lanes;  // columns left of mine
                    weight = vselect(ahead > REAL(0.5), vset(1), vselect(ahead > REAL(-0.5), vset(REAL(0.5)), vset(0)));
                }
                Values X;
                integrals_of(mine, column, weight, shape, table, &X);
                vstore(place + lane, X.LL);
#if RELATIVISTIC
                vstore(place + GROUP + lane, X.SS);
                vstore(place + 2 * GROUP + lane, X.LS);
                vstore(place + 3 * GROUP + lane, X.SL);
                UNROLL for (int i = 0; i < 4; ++i) vstore(place + (4 + i) * GROUP + lane, X.K[i]);
#endif
            }
        }
    }
}
