import js from '@eslint/js';
import globals from 'globals';
import ts from 'typescript-eslint';

const markup = ['innerHTML', 'outerHTML', 'insertAdjacentHTML', 'setHTMLUnsafe', 'srcdoc'];

export default ts.config(
  { ignores: ['node_modules', 'test/output'] },
  js.configs.recommended,
  {
    rules: {
      'max-lines': ['error', 350],
      'max-lines-per-function': ['error', 70],
      'eqeqeq': 'error',
      'no-var': 'error',
      'prefer-const': 'error',
      'no-eval': 'error',
      'no-console': 'off',
    },
  },
  {
    files: ['src/**/*.ts'],
    extends: [ts.configs.strictTypeChecked],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      // Whatever the document says is text: nothing may parse it as markup.
      'no-restricted-properties': [
        'error',
        ...markup.map((property) => ({ property, message: 'use dom/element' })),
        { object: 'document', property: 'write', message: 'use dom/element' },
      ],
      'no-console': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-non-null-assertion': 'error',
      // Enumerations of uPlot are ambient constants, which have no values to import.
      '@typescript-eslint/no-unsafe-enum-assignment': 'off',
      // Texts that are empty are as good as absent in many places.
      '@typescript-eslint/prefer-nullish-coalescing': 'off',
      '@typescript-eslint/no-unnecessary-condition': 'error',
    },
  },
  {
    // Long literals of data.
    files: ['test/support/fixtures.mjs', 'test/support/parts.mjs'],
    rules: { 'max-lines-per-function': 'off' },
  },
  {
    files: ['**/*.mjs', '*.js'],
    languageOptions: { globals: { ...globals.node, ...globals.browser } },
  },
);
