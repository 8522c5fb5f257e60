// What every listing of this backend answers to a cursor that it has not given.
import { MillraceError } from '../../core/errors.ts'

export function badCursor(cursor: string): MillraceError {
  const message = `${JSON.stringify(cursor.slice(0, 40))} is not a cursor of an earlier page: pass \`nextCursor\` as it was given`
  return new MillraceError('INVALID_OPTION', message, { details: { option: 'cursor' } })
}
