"""Lines of a .csv, .tsv or .txt → rows of fields."""

import csv
from collections.abc import Iterator, Sequence

from albert_keras.tasks.tables.rows import Row, is_number

#: Delimiters of a .csv. The first one is that of a file whose columns are numbers.
DELIMITERS = (",", ";", "\t", "|")

# The text of a row may be longer than the 131,072 characters that Python allows by default.
csv.field_size_limit(2**31 - 1)


def delimiter_of(lines: Sequence[Row], columns: Sequence[str | int]) -> str:
    """Returns the delimiter with which the header of a .csv has all columns that are named.

    It is the first one of `DELIMITERS` if there is none, or no column has a name.
    """
    names = {str(column) for column in columns if not is_number(column)}
    for delimiter in DELIMITERS:
        header = next(csv_rows(lines, delimiter), None)
        if header is not None and names <= set(header.fields):
            return delimiter
    return DELIMITERS[0]


def csv_rows(lines: Sequence[Row], delimiter: str) -> Iterator[Row]:
    """Yields the rows of a .csv, as RFC 4180 has it; after a broken one, the rows of its next line.

    A field in quotation marks may have delimiters, line breaks, and marks that are doubled.
    """
    begin = 0
    while begin < len(lines):
        rest = (lines[number].raw for number in range(begin, len(lines)))
        reader = csv.reader(rest, delimiter=delimiter, strict=True)
        start = begin
        try:
            for fields in reader:
                end = begin + reader.line_num
                own = lines[start:end]
                problem = next((line.problem for line in own if line.problem), None)
                raw = "".join(line.raw for line in own)
                yield Row(lines[start].line, fields, raw, problem)
                start = end
        except csv.Error as error:
            yield lines[start]._replace(
                fields=[lines[start].fields], problem=f"must be CSV: {error}."
            )
        begin = start + 1


def tab_rows(lines: Sequence[Row]) -> Iterator[Row]:
    """Yields the rows of a .tsv: a line each, with tabs between its fields and nothing quoted."""
    for line in lines:
        yield line._replace(fields=line.fields.split("\t"))
