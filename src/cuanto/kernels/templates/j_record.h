// Write the records of the kets of a class, in the reverse of `order`; the fields of each group of KETS are interleaved.
// Fields of a record: geometry, then the Hermite densities times `factor`, with the sign (-1)^(t+u+v) of derivatives with
// respect to Q. Kets that fill up the last group have exponent 1 and no density. An item is one field of a group of kets;
// `first`: the first pair of the class.
KERNEL(THREADS) ENTRY(PARAMETERS) {
    const int width = densities * tuples, fields = GEOMETRY + width;
    FOR_ITEMS(item) {
        const INDEX group = item / fields;
        const int field = (int)(item % fields), w = field - GEOMETRY;
        const int* tuple = table + 8 * (w < 0 ? 0 : w % tuples);
        const double sign = (tuple[0] + tuple[1] + tuple[2]) % 2 ? -1 : 1;
        for (int lane = 0; lane < KETS; ++lane) {
            const INDEX place = group * KETS + lane, ket = order[place < kets ? first + kets - 1 - place : first];
            const REAL value = w < 0 ? geometry[ket * GEOMETRY + field]
                                     : REAL(H[(ket - first) * width + w] * factor[ket] * sign);
            record[item * KETS + lane] = place < kets ? value : REAL(field == 0);
        }
    }
}
