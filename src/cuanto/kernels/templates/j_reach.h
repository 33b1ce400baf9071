// Number of groups of kets of each class for each group of bras: all but those whose sum is below the limit (`last`), and
// among these the ones that need double precision (`split`). rest[k]: the sum of the bounds of the last k + 1 kets of a
// class.
FN int j_needed(const double* rest, INDEX kets, double limit) {
    INDEX low = 0, high = kets;
    while (low < high) {
        const INDEX middle = (low + high) / 2;
        if (rest[middle] <= limit) low = middle + 1;
        else high = middle;
    }
    return (int)((kets - low + KETS - 1) / KETS);
}

KERNEL(THREADS) ENTRY(PARAMETERS) {
    FOR_ITEMS(item) {
        const INDEX* own = classes + CLASS_FIELDS * (item / groups);
        const INDEX group = item % groups, first_ket = own[CLASS_PAIR], kets = own[CLASS_FIELDS + CLASS_PAIR] - first_ket;
        const int all = j_needed(rest + first_ket, kets, limit / bounds[group]);
        const int first = j_needed(rest + first_ket, kets, single_limit / bounds[group]);
        last[item] = all;
        split[item] = first < all ? first : all;
    }
}
