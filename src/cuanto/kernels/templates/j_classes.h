// Classes of pairs with one Hermite order: a table with a row for each, and one for their end.
#define CLASS_FIELDS 3
#define CLASS_PAIR 0   // its first pair
#define CLASS_GROUP 1  // its first group of bras
#define CLASS_ORDER 2  // its Hermite order as bras

// The class of a pair or of a group.
FN int j_class(const INDEX* classes, int field, INDEX number) {
    int c = 0;
    while (number >= classes[CLASS_FIELDS * (c + 1) + field]) ++c;
    return c;
}

// Keys sort pairs by class, then by powers of four of their bounds, then along the curve in space.
FN INDEX j_power(double bound) { return bits_of(bound) >> 53; }
FN INDEX j_key(INDEX number, INDEX power, INDEX along) { return number << 57 | power << 47 | along; }
