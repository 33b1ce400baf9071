// Records of the sorted bras of all classes, the position of every pair among the bras of its class (`rank`), and the
// largest bound of every group of bras. `smearing`: 1/omega^2 of the operator erf(omega r)/r, whose bras have the exponents
// p' with 1/p' = 1/p + 1/omega^2. An item is a group.
KERNEL(THREADS) ENTRY(PARAMETERS) {
    FOR_TEAMS(group) {
        const INDEX* own = classes + CLASS_FIELDS * j_class(classes, CLASS_GROUP, group);
        const INDEX first = own[CLASS_PAIR], end = own[CLASS_FIELDS + CLASS_PAIR];
        const INDEX from = first + (group - own[CLASS_GROUP]) * BRAS, to = from + BRAS < end ? from + BRAS : end;
        double mine = 0;
        FOR_MEMBERS(place, from, to) {
            const INDEX pair = order[place];
            const double root = geometry[4 * pair];
            rank[pair] = place - first;
            mine = raised[pair] > mine ? raised[pair] : mine;
            record[4 * place] = root / vsqrt(1 + smearing * root * root);
            for (int x = 1; x < 4; ++x) record[4 * place + x] = geometry[4 * pair + x];
        }
        mine = team_most(mine);
        if (FIRST_MEMBER) largest[group] = mine;
    }
}
