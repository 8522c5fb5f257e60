// What the tests of tasks share: a context without a queue, and folders that go with the test.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { memory } from '../../src/index.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import type { TaskContext } from '../../src/tasks/task.ts'

export function contextOf(parts: Partial<TaskContext> = {}): TaskContext {
  return { runtime: createRuntime(), backend: memory(), signal: new AbortController().signal, ...parts }
}

export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'millrace-tasks-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}
