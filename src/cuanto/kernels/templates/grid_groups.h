// Points, groups of points and their lists of shells.
#ifdef KERNEL_PLACE
// Every point: its position, atom and quadrature weight, and the key of its group: the atom's sphere for the inner shells
// (depth < fraction), else atoms + the number of its cube.
KERNEL(SETUP_THREADS) ENTRY(PARAMETERS) {
    FOR_ITEMS(g) {
        INDEX a = 0;
        for (INDEX last = atoms; last - a > 1;) {  // atom_first[a] <= g < atom_first[a + 1]
            const INDEX middle = (a + last) / 2;
            if (atom_first[middle] <= g) a = middle;
            else last = middle;
        }
        const INDEX j = pattern_first[a] + g - atom_first[a];
        INDEX cube = 0;
        for (int x = 0; x < 3; ++x) {
            const double r = pattern[3 * j + x] + atom[3 * a + x];
            position[x * points + g] = r;
            cube = cube * cubes[x] + (INDEX)((r - low[x]) / edge);
        }
        own[g] = (int)a;
        weight[g] = pattern_weight[j];
        key[g] = pattern_depth[j] < fraction ? a : atoms + cube;
    }
}
#endif

#ifdef KERNEL_EXTENTS
// Every group: the box of its points, the middle of the box, and the radius around it.
KERNEL(SETUP_THREADS) ENTRY(PARAMETERS) {
    FOR_TEAMS(group) {
        const INDEX from = first[group], to = first[group + 1];
        double middle[3], away = 0;
        for (int x = 0; x < 3; ++x) {
            const double* r = position + x * points;
            double least = r[from], most = r[from];
            FOR_MEMBERS(g, from, to) {
                least = r[g] < least ? r[g] : least;
                most = r[g] > most ? r[g] : most;
            }
            least = team_least(least);
            most = team_most(most);
            middle[x] = (least + most) / 2;
            if (FIRST_MEMBER) {
                box_low[3 * group + x] = least;
                box_high[3 * group + x] = most;
                centre[3 * group + x] = middle[x];
            }
        }
        FOR_MEMBERS(g, from, to) {
            double d = 0;
            for (int x = 0; x < 3; ++x) d += (position[x * points + g] - middle[x]) * (position[x * points + g] - middle[x]);
            away = d > away ? d : away;
        }
        away = team_most(away);
        if (FIRST_MEMBER) radius[group] = vsqrt(away);
    }
}
#endif

#if defined(KERNEL_COUNT) || defined(KERNEL_FILL) || defined(KERNEL_BOUND)
// A lower bound on the distance of the points of a group from the centre of a shell.
FN double distance_to(INDEX group, const double* R, const double* box_low, const double* box_high, const double* centre,
                      const double* radius) {
    double to_box = 0, to_centre = 0;
    for (int x = 0; x < 3; ++x) {
        const double m = R[x] - centre[3 * group + x];
        const double below = box_low[3 * group + x] - R[x], above = R[x] - box_high[3 * group + x];
        const double outside = below > above ? below : above;
        if (outside > 0) to_box += outside * outside;
        to_centre += m * m;
    }
    const double by_ball = vsqrt(to_centre) - radius[group], by_box = vsqrt(to_box);
    return by_ball > by_box ? by_ball : by_box;
}
// Whether a function of the shell exceeds the threshold somewhere in the group.
#define SIGNIFICANT(group, s) (distance_to(group, shell_centre + 3 * (s), box_low, box_high, centre, radius) < reach[s])
#endif

#ifdef KERNEL_COUNT
// Every group: numbers of significant shells and functions, and a hash (a sum of random numbers) of its set of shells.
KERNEL(SETUP_THREADS) ENTRY(PARAMETERS) {
    FOR_TEAMS(group) {
        int found = 0, functions = 0;
        unsigned long long mark = 0;
        FOR_MEMBERS(s, 0, shells) if (SIGNIFICANT(group, s)) {
            ++found;
            functions += shell_size[s];
            mark += shell_mark[s];
        }
        found = team_sum(found);
        functions = team_sum(functions);
        mark = team_sum(mark);
        if (FIRST_MEMBER) group_shells[group] = found, group_functions[group] = functions, group_mark[group] = mark;
    }
}
#endif

#ifdef KERNEL_FILL
// Every list: the shells of group chosen[list] in order, where their functions begin, and the functions.
KERNEL(SETUP_THREADS) ENTRY(PARAMETERS) {
    FOR_TEAMS(list) {
        const INDEX group = chosen[list], from = MEMBER_BEGIN(shells), to = MEMBER_END(shells);
        int found = 0, functions = 0;
        for (INDEX s = from; s < to; ++s)
            if (SIGNIFICANT(group, s)) ++found, functions += shell_size[s];
        found = team_before(found);
        functions = team_before(functions);
        for (INDEX s = from; s < to; ++s)
            if (SIGNIFICANT(group, s)) {
                list_shell[list_first[list] + found] = (int)s;
                list_row[list_first[list] + found] = functions;
                for (int f = 0; f < shell_size[s]; ++f) ao[ao_first[list] + functions + f] = shell_ao[s] + f;
                ++found;
                functions += shell_size[s];
            }
    }
}
#endif

#ifdef KERNEL_BOUND
// Every group: an upper bound on the functions of each shell of its list at its points.
KERNEL(SETUP_THREADS) ENTRY(PARAMETERS) {
    FOR_TEAMS(group) {
        FOR_MEMBERS(k, list_first[group], list_first[group + 1]) {
            const INDEX s = list_shell[k];
            const double steps = distance_to(group, shell_centre + 3 * s, box_low, box_high, centre, radius) / reach_step;
            const INDEX step = steps > 0 ? (INDEX)steps : 0;
            bound[k] = envelope[shell_kind[s] * envelope_steps + (step < envelope_steps ? step : envelope_steps - 1)];
        }
    }
}
#endif
