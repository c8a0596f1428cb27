//! Checked values of all layers, put over each other.

use std::collections::BTreeMap;

use toml::Value;

use super::{
    origin::Origin,
    schema::{Kind, Spec},
};

/// A table: what its keys are set to, and the tables inside it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    /// Who opened it last; the default, if nobody did.
    pub(crate) origin: Origin,
    /// Keys with values.
    pub(crate) leaves: BTreeMap<String, Leaf>,
    /// Sections, and any other tables.
    pub(crate) tables: BTreeMap<String, Table>,
}

/// A value that a key has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Leaf {
    /// The value, with paths made whole.
    pub(crate) value: Value,
    /// Who said it.
    pub(crate) origin: Origin,
    /// Who said each item, if it is a list.
    pub(crate) items: Vec<Origin>,
}

impl Table {
    /// The defaults of a section. Named sections have none, and inherited ones inherit.
    pub(crate) fn defaults(spec: &Spec) -> Self {
        let mut table = Self::default();
        for key in spec.keys {
            if let Kind::Table(inner) = key.kind {
                table.tables.insert(key.name.into(), Self::defaults(inner));
            } else if let Some(value) = spec.default_of(key) {
                table.set_default(key.name, value);
            }
        }
        table
    }

    /// Put a later layer over this one.
    pub(crate) fn lay(&mut self, spec: &Spec, later: Self) {
        for (one, other) in spec.rivals {
            for (set, taken_back) in [(one, other), (other, one)] {
                if later.leaves.contains_key(*set) {
                    self.leaves.remove(*taken_back);
                }
            }
        }
        if later.origin != Origin::Default {
            self.origin = later.origin;
        }
        self.leaves.extend(later.leaves);
        for (name, later) in later.tables {
            let table = self.tables.entry(name.clone()).or_default();
            match spec.key(&name).map(|key| key.kind) {
                Some(Kind::Table(spec) | Kind::Inherited(_, spec)) => table.lay(spec, later),
                Some(Kind::Named(spec)) => {
                    for (chosen, later) in later.tables {
                        table.tables.entry(chosen).or_default().lay(spec, later);
                    }
                }
                _ => table.leaves.extend(later.leaves),
            }
        }
    }

    /// Give every named section its defaults.
    pub(crate) fn fill_named(&mut self, spec: &Spec) {
        for key in spec.keys {
            let Some(table) = self.tables.get_mut(key.name) else {
                continue;
            };
            match key.kind {
                Kind::Table(spec) => table.fill_named(spec),
                Kind::Named(spec) => {
                    for named in table.tables.values_mut() {
                        let mut filled = Self::defaults(spec);
                        filled.lay(spec, std::mem::take(named));
                        filled.fill_named(spec);
                        *named = filled;
                    }
                }
                _ => {}
            }
        }
    }

    /// Set a value that nobody said.
    pub(crate) fn set_default(&mut self, name: &str, value: impl Into<Value>) {
        let leaf = Leaf { value: value.into(), origin: Origin::Default, items: Vec::new() };
        self.leaves.insert(name.into(), leaf);
    }

    /// The values alone.
    pub(crate) fn into_value(self) -> Value {
        let leaves = self.leaves.into_iter().map(|(name, leaf)| (name, leaf.value));
        let tables = self.tables.into_iter();
        let tables = tables.map(|(name, table)| (name, table.into_value()));
        Value::Table(leaves.chain(tables).collect())
    }
}

impl Leaf {
    /// The text, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        self.value.as_str()
    }
}
