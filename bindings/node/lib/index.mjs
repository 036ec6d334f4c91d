// index.mjs: the package for `import`; the code is index.cjs, so that both share one addon.
import caisson from './index.cjs';

export const {
  open, connect, Sandbox, Process, Watch, CaissonError, STATUSES, registerBackend, version, setLog, sandboxes,
  destroyId, doctor, auditRead, auditReadFile, auditVerify, auditVerifyFile, auditLogs, auditRemove, forget, asideList,
  asideRestore, asideRemove,
} = caisson;
export default caisson;
