'use strict';
// stream.cjs: output of commands as async iterators, files as streams.

const { Readable, Writable } = require('node:stream');
const { StringDecoder } = require('node:string_decoder');

/** Output of a running command. The command waits while its output is not taken. */
class ExecStream {
  #controller = new AbortController();
  #decoders = { stdout: new StringDecoder(), stderr: new StringDecoder() };
  #chunk = null; // { value, taken }: offered and not taken yet
  #waiting = null; // wakes the reader
  #done = false;
  #discard = false;
  #outcome;

  /** start(onOutput, signal) runs the command. */
  constructor(start, signal) {
    const all = signal ? AbortSignal.any([signal, this.#controller.signal]) : this.#controller.signal;
    this.#outcome = start((stream, data) => this.#offer(stream, data), all);
    const ended = () => {
      this.#done = true;
      this.#waiting?.();
    };
    this.#outcome.then(ended, ended);
  }

  #offer(stream, data) {
    if (this.#discard) return undefined;
    const value = { stream, data, text: this.#decoders[stream].write(data) };
    return new Promise((taken) => {
      this.#chunk = { value, taken };
      this.#waiting?.();
    });
  }

  #take() {
    const { value, taken } = this.#chunk;
    this.#chunk = null;
    taken();
    return value;
  }

  async next() {
    while (!this.#chunk && !this.#done) await new Promise((wake) => { this.#waiting = wake; });
    this.#waiting = null;
    if (this.#chunk) return { done: false, value: this.#take() };
    await this.#outcome; // its failure is the iterator's
    return { done: true, value: undefined };
  }

  /** Ends the command: the loop was left early. */
  async return(value) {
    this.#discard = true;
    this.#controller.abort();
    if (this.#chunk) this.#take();
    await this.#outcome.catch(() => {});
    return { done: true, value };
  }

  /** The result. Output that was not read is not waited for. */
  result() {
    this.#discard = true;
    if (this.#chunk) this.#take();
    return this.#outcome;
  }

  [Symbol.asyncIterator]() { return this; }

  async [Symbol.asyncDispose]() { await this.return(); }
}

/** A Readable of what start(sink, signal) delivers. */
function readableOf(start, signal) {
  const controller = new AbortController();
  const all = signal ? AbortSignal.any([signal, controller.signal]) : controller.signal;
  let resume = null;
  const begin = (stream) => {
    const sink = (chunk) => (stream.push(chunk) ? undefined : new Promise((taken) => { resume = taken; }));
    start(sink, all).then(() => stream.push(null), (error) => stream.destroy(error));
  };
  let begun = false;
  return new Readable({
    read() {
      if (!begun) {
        begun = true;
        return begin(this);
      }
      const taken = resume;
      resume = null;
      taken?.();
    },
    destroy(error, done) {
      controller.abort();
      resume?.();
      done(error);
    },
  });
}

/** Chunks that are pushed by a Writable and pulled by a verb. */
class Channel {
  #item = null;
  #wake = null;
  #ended = false;
  error = null;

  offer(chunk, taken) {
    this.#item = { chunk, taken };
    this.#wake?.();
  }

  end(error = null) {
    this.error = error;
    this.#ended = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator]() {
    for (;;) {
      while (!this.#item && !this.#ended) await new Promise((wake) => { this.#wake = wake; });
      if (this.error) throw this.error;
      if (!this.#item) return;
      const { chunk, taken } = this.#item;
      this.#item = null;
      yield chunk;
      taken();
    }
  }
}

/** A Writable whose bytes go to start(source); `finish` comes after the verb has succeeded. */
function writableOf(start) {
  const channel = new Channel();
  let outcome;
  return new Writable({
    construct(done) {
      outcome = start(channel);
      outcome.catch((error) => this.destroy(error));
      done();
    },
    write(chunk, encoding, done) { channel.offer(chunk, done); },
    final(done) {
      channel.end();
      outcome.then(() => done(), done);
    },
    destroy(error, done) {
      channel.end(error ?? new Error('the stream was destroyed'));
      outcome.then(() => done(error), () => done(error));
    },
  });
}

module.exports = { ExecStream, readableOf, writableOf };
