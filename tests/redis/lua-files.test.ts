// The scripts that this package brings are embedded as they are on disk.
import { expect, test } from 'vitest'
import { EMBEDDED_LUA } from '../../scripts/embed-lua.ts'
import { exists, readText } from '../tidy/source.ts'

test.each(EMBEDDED_LUA)('$path is what `npm run generate` writes', ({ path, render }) => {
  // Not compared as text: the difference of two such lines helps nobody.
  expect(exists(path) && readText(path) === render() ? 'the same' : 'differs: run `npm run generate`').toBe('the same')
})
