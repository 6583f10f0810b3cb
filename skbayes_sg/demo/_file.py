"""CSV files as rows of texts, and names for the files that are something else."""

import csv
import gzip
import io
import zlib

__all__ = ["TableError", "read_rows"]

GZIP = b"\x1f\x8b"
# What files begin with that are often mistaken for CSV files; and what to do with them.
OTHER_FORMATS = {
    b"PK\x03\x04": "a zip archive or an Excel workbook. Unpack the archive, or save the sheet of "
    "the workbook as 'CSV UTF-8'.",
    b"\xd0\xcf\x11\xe0": "an Excel workbook. Save its sheet as 'CSV UTF-8'.",
    b"PAR1": "a Parquet file. Save the table as CSV, with pandas by read_parquet and to_csv.",
}


class TableError(ValueError):
    """A table cannot be used; the message says why, and what to do."""


def read_rows(path):
    """The header of a CSV file; its rows, each with as many fields; and the delimiter."""
    try:
        header, rows, delimiter = _rows(path, _contents(path))
    except UnicodeDecodeError as error:
        raise TableError(f"{path} is not UTF-8 text ({error}). Save it as 'CSV UTF-8'.") from error
    except csv.Error as error:
        raise TableError(f"{path} is not a CSV file: {error}.") from error
    except OSError as error:
        raise TableError(f"Cannot read {path}: {error.strerror or error}.") from error
    except (EOFError, zlib.error) as error:
        raise TableError(f"Cannot unpack {path}, which gzip has packed: {error}.") from error
    if not rows:
        raise TableError(f"{path} has no rows below its header line.")
    return header, rows, delimiter


def _contents(path):
    """The bytes of a file, unpacked if gzip has packed them; `TableError` for other formats."""
    with open(path, "rb") as file:
        data = file.read()
    if data.startswith(GZIP):
        data = gzip.decompress(data)
    for beginning, what in OTHER_FORMATS.items():
        # A header may begin with the letters of Parquet, which end its files as well.
        if data.startswith(beginning) and (beginning != b"PAR1" or data.endswith(beginning)):
            raise TableError(f"{path} is {what}")
    return data


def _rows(path, data):
    """Header, rows and delimiter of the CSV file that has these bytes."""
    file = io.TextIOWrapper(io.BytesIO(data), newline="", encoding="utf-8-sig")
    delimiter = _delimiter(file.readline())
    file.seek(0)
    reader = csv.reader(file, delimiter=delimiter, skipinitialspace=True)
    header = [name.strip() for name in next(reader, [])]
    rows = [_checked(row, header, path, reader.line_num) for row in reader if row]
    return header, rows, delimiter


def _delimiter(line):
    """The delimiter of a CSV file: the one that its first line has most of."""
    return max(",;\t|", key=line.count)


def _checked(row, header, path, line):
    """The stripped fields of a row; `TableError` if there are more or fewer than in the header."""
    if len(row) != len(header):
        raise TableError(
            f"Line {line} of {path} has {len(row)} fields, but the header has {len(header)}."
        )
    return [text.strip() for text in row]
