// index.d.mts: the types for `import`.
export * from './index.js';
import * as caisson from './index.js';
export default caisson;
