//! Choices of a setting: one table says the word, the variant and what it means, and everything
//! else is made of it.
//!
//! The settings' schema and reader, summaries, the simulator and the documents read the same rows,
//! so that adding a choice is one row.

/// One of the words that a setting may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// As it is written.
    pub word: &'static str,
    /// What it means: half a sentence, behind the word and a colon.
    pub means: &'static str,
}

/// Makes an enum of choices, the first of which is the default, with `CHOICES`, `word`, `means` and
/// `of`, and makes it a [`Persist`](crate::persist::Persist):
///
/// ```
/// suimon_model::choices! {
///     /// Who goes first.
///     pub enum Order {
///         /// First in, first out.
///         FirstIn = 0, "fifo", "first in, first out";
///         /// Last in, first out.
///         LastIn = 1, "last_in", "last in, first out";
///     }
/// }
/// assert_eq!(Order::of("last_in"), Some(Order::LastIn));
/// assert_eq!(Order::default().word(), "fifo");
/// ```
///
/// A row is: variant, the number that stands for it in recordings, its word, and what it means. A
/// variant may hold one value with a default, `Fixed(limit: Limit)`: where its word is read, it
/// holds that.
#[macro_export]
macro_rules! choices {
    (
        $(#[$doc:meta])*
        pub enum $name:ident {
            $(
                $(#[$row_doc:meta])*
                $variant:ident $(($value:ident: $type:ty))? = $tag:literal, $word:literal, $means:literal;
            )+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Debug)]
        pub enum $name {
            $($(#[$row_doc])* $variant $(($type))?,)+
        }

        impl $name {
            /// Every choice there is, the default first.
            pub const CHOICES: &'static [$crate::Choice] =
                &[$($crate::Choice { word: $word, means: $means },)+];

            /// Returns the word it is written with.
            pub const fn word(self) -> &'static str {
                match self {
                    $($name::$variant { .. } => $word,)+
                }
            }

            /// Returns what it means: half a sentence, behind its word and a colon.
            pub const fn means(self) -> &'static str {
                match self {
                    $($name::$variant { .. } => $means,)+
                }
            }

            /// Returns the choice that is written with `word`; what it holds has its default.
            pub fn of(word: &str) -> Option<Self> {
                match word {
                    $($word => Some($name::$variant $((<$type>::default()))?),)+
                    _ => None,
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                $name::of($name::CHOICES[0].word).expect("a word is its own choice")
            }
        }

        $crate::saved_enum!($name { $($tag = $variant $(($value))?),+ });
    };
}
