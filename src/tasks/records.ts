// What is known of the runs of a task: the last one with its result, the last that succeeded, and the one that goes on now. Notes
// in the store, so that every process and every person sees the same.
import type { NoteStore } from '../store/note-store.ts'
import type { TaskName, TaskResult } from './task.ts'

export interface TaskRecord {
  readonly task: TaskName
  /** `failed`: see `error`. */
  readonly outcome: TaskResult['outcome'] | 'failed'
  readonly startedAtMs: number
  readonly durationMs: number
  readonly by: TaskRunner
  readonly result: TaskResult | null
  readonly error: { readonly code: string; readonly message: string } | null
  /** When it last came to its end without an error. */
  readonly succeededAtMs: number | null
}

export interface TaskRunner {
  readonly host: string
  readonly pid: number
  /** Absent: it was run directly. */
  readonly jobId?: string
}

export interface RunningTask {
  readonly startedAtMs: number
  readonly by: TaskRunner
}

const SPACE = 'tasks'

/** A key of its own, that expires with the one who writes it. */
const runningKey = (task: TaskName): string => `${task}:running`

export async function readRecord(notes: NoteStore, task: TaskName): Promise<TaskRecord | null> {
  const note = await notes.get(SPACE, task)
  return note === null ? null : (JSON.parse(note.value) as TaskRecord) // written by writeRecord
}

export async function writeRecord(notes: NoteStore, record: TaskRecord): Promise<void> {
  await notes.put({ space: SPACE, key: record.task, value: JSON.stringify(record) })
}

export async function readRunning(notes: NoteStore, task: TaskName): Promise<RunningTask | null> {
  const note = await notes.get(SPACE, runningKey(task))
  return note === null ? null : (JSON.parse(note.value) as RunningTask) // written by writeRunning
}

export async function writeRunning(notes: NoteStore, task: TaskName, run: RunningTask, ttlMs: number): Promise<void> {
  await notes.put({ space: SPACE, key: runningKey(task), value: JSON.stringify(run), ttlMs })
}

export async function removeRunning(notes: NoteStore, task: TaskName): Promise<void> {
  await notes.remove(SPACE, runningKey(task))
}
