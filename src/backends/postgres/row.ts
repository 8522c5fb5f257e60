// Rows as the driver gives them here: texts, null where SQL has null. Whoever asked knows what each column is.

export type Row = readonly (string | null)[]

/** SQL null, or a column that was not asked for. */
export function isAbsent(value: string | null | undefined): value is null | undefined {
  return value === null || value === undefined
}

/** Milliseconds of a column that SQL made with `ms_of`. */
export function msOf(value: string | null | undefined): number | null {
  return isAbsent(value) ? null : Number(value)
}
